// What the quality sweep does, in words: printed by its --protocol.
// SPDX-License-Identifier: MIT
#pragma once

namespace lab {

inline constexpr const char* protocol = R"(Where values are rounded
  Baseline     stored weights widened to float32, float32 arithmetic; negative log-likelihoods are summed in double.
  Weights (w)  q, k, v, o, gate, up and down of each layer, each its own tensor. Never biases, norms or the embedding;
               the output head, tied or not, only where a recipe says head.
  Activations  the inputs of those linears, four tensors a layer: the attention norm's output (shared by q, k and v),
  (a)          o's input, the MLP norm's output (shared by gate and up), down's input. The residual stream, queries,
               scores, softmax and the head's input are left alone.
  KV (k, v)    keys after their norm and rotation, values after their bias, on their way into the cache, through which
               every position goes, the token's own included. channel: one KV head's dimension over the tokens; head: a
               KV head; token: a KV head of one token, over its dimensions.
  Centred      the mean of each K channel over a sequence's first pass is taken away first. The softmax does not see it after the
               rotation; before the rotation it is added back on reading.
  Softmax (p)  by default 256 exp(s - max), divided by the unrounded sum afterwards; noscale and token round the quotient.
  Arithmetic   descale = float(amax / largest), 1 for a zero tensor; code = float(x / descale) rounded to nearest even,
               saturating; value = float(code * descale). Without a scale the descale is 1. INT8: amax / 127, codes
               within -127 and 127; g128: groups of 128 along the input, the last one short.
  Scales       found by one forward pass over one window, never a batch of windows, so that a scale of K sees later
               tokens of its window. A question's shared beginning is one pass, each ending another. static: the amax
               that the baseline has over the next --tokens tokens of the text, or over --calibration; clips are counted.
Perplexity
  Windows      the first --tokens tokens in windows of --context, none overlapping, each from an empty cache. Where the
               tokenizer begins texts with a token, it stands before each window and every token is predicted; else the
               first token of a window is not.
  Documents    with --split, a window a document, cut at --context tokens, until --tokens predictions are made.
  Perplexity   exp(sum of negative log-likelihoods / predictions).
Questions
  Letters      {"question", "choices", "gold", "subject"}: the likeliest of the tokens " A" to " D", the first of equals,
               behind these lines, with blanks for the subject's "_" and no "about" without one. No examples, no chat
               template.
                 The following are multiple choice questions (with answers) about SUBJECT.
                 (an empty line)
                 QUESTION
                 A. CHOICE ... D. CHOICE, a line each
                 Answer:
  Texts        {"query", "choices", "gold"}: the query, "Answer:" on a new line where the query begins with "Question:",
               then a blank and each choice. The sum of the choice's log-probabilities over its UTF-8 bytes.
Statistics
  Change       paired, a token with itself; its standard error by blocks of 64 tokens within documents, or by document
               where there are 20 or more. Tokens are not independent, so an error that takes them so is too small.
  KL           mean of KL(baseline || recipe) over the predicted distributions. Recipes are ranked by it: it moves by a
               few percent where perplexity moves by luck.
  Luck         the change over descales times 2^(k/8), k = 0 to 7: as good as the recipe's own, but other roundings.
               What differs by less is called equal.
  Choices      Wilson's 95 % interval, flips both ways against the baseline, McNemar's exact p.
)";

}  // namespace lab

"""Statistics, each defined once and used by every table, report and study.

- means: the mean of what is known
- intervals: bootstraps that draw whole groups
- paired: is one system better than another on the same rows?
- multiple: p-values of several tests at once (Holm)
- shares: Wilson's interval and the binomial test
- classification: accuracy, F1, AUROC
- agreement: Krippendorff's alpha over drawn items
- regression: slopes and means of rows that come in clusters
- two_way: win rates whose votes are clustered by rater and by item

What scipy, scikit-learn or statsmodels compute is left to them. Ours are vectorised functions for
resampling, where a library call for each of a thousand draws would take minutes.
"""

// Pages that say how to use Trendlake come before decisions that match a word equally well. Else the weights are Sphinx's.
var Scorer = {
  score: ([page, , , , score]) => (page.startsWith("adr/") ? score - 4 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

"""Finds British spellings, because our sources and pages use only American spelling."""
import re

word = re.compile(r"""(?<![a-z])(?:
    \w*(?:behavi|col|endeav|fav|hon|lab|neighb)our\w*
  | (?:cent|fib|met|theat)re[sd]?
  | (?:cancel|label|level|model|signal|total|travel)l(?:ed|ing|er)
  | (?:re)?analys(?:ed?|ing|er)
  | (?:mis)?(?:learnt|spelt) | licence | artefact | judgement | towards | whilst | grey
  | (?:de|re|un)?(?:character|custom|factor|final|general|initial|local|material|maxim|minim|normal|optim|organ|parallel
     |penal|prior|quant|random|real|recogn|serial|special|standard|summar|synchron|token|util|vector|visual)
    is(?:e[ds]?|er|ing|ation)s?
  )(?![a-z])""", re.X | re.I)
# Names from other projects, and deliberate typing errors in our tests.
names_of_others = re.compile(r'aria-labelledby|PMPI_Test_cancelled|cancelled_write_bytes|--(?:use-)?colour(?:-mode)?'
                             r'|"tokenise"|\boptimiser is not|"optimiser\b')


def british(line):
    return word.findall(names_of_others.sub("", line))

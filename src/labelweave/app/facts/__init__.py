"""Facts about a fitted model, shared by the command line, reports and notebooks."""

from labelweave.app.facts.lines import certificate_words as certificate_words
from labelweave.app.facts.lines import decision_lines as decision_lines
from labelweave.app.facts.lines import fact_lines as fact_lines
from labelweave.app.facts.lines import facts_html as facts_html
from labelweave.app.facts.lines import label_lines as label_lines
from labelweave.app.facts.lines import origin_lines as origin_lines
from labelweave.app.facts.lines import parameter_words as parameter_words
from labelweave.app.facts.model_facts import ModelFacts as ModelFacts
from labelweave.app.facts.model_facts import Section as Section
from labelweave.app.facts.model_facts import clique_facts as clique_facts
from labelweave.app.facts.model_facts import label_thresholds as label_thresholds
from labelweave.app.facts.model_facts import model_facts as model_facts
from labelweave.app.facts.model_facts import plain as plain
from labelweave.app.facts.words import FactorGeometry as FactorGeometry
from labelweave.app.facts.words import class_words as class_words
from labelweave.app.facts.words import covariance_of as covariance_of
from labelweave.app.facts.words import prior_covariances as prior_covariances

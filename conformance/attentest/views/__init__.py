"""Views: results shown in a terminal, as plots and as HTML."""

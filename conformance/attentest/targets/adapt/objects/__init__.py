"""Objects that constructors take: settings, and parts."""

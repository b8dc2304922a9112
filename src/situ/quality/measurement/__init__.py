"""What publishers really deliver: events become panes of ten seconds, panes become windows, windows become measured
values, and these correct what a profile declares.

Engines run the meter and the acknowledgement tracker; the negotiator runs the window and the estimator. It does not
read clocks or streams.

Front door: panes (Pane, pane_of, PaneStore, PaneWindow), meter (Meter, MeteredPart, PaneMerger, MeasuredPublishers),
acknowledgements (AckTracker, StoredBatches, ConsumerProgress), estimator (Estimate, Correction, effective_profile).
"""

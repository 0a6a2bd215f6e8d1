-- Waiting and transfer of all ranks in the analysed calls that began at :from_ns (aligned) or later, scaled like those of the run.
SELECT total(wait_ns * factor) AS wait_ns, total(transfer_ns * factor) AS transfer_ns FROM late_scaled WHERE start_ns >= :from_ns;

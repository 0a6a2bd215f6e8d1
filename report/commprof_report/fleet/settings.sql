-- Which settings and versions, which describe libraries and not the job, did one rank run with?
SELECT key, value FROM fact
WHERE (key GLOB 'env.OMPI_MCA_*' OR key GLOB 'env.MPICH_*' OR key GLOB 'env.MPIR_*'
       OR key GLOB 'env.I_MPI_*' OR key GLOB 'env.UC[XC]_*' OR key GLOB 'env.HCOLL_*'
       OR key GLOB 'env.FI_*' OR key GLOB 'env.PSM*' OR key GLOB 'env.ROMIO_*'
       OR key GLOB 'env.NCCL_*' OR key GLOB 'env.OMP_*' OR key GLOB 'env.HOROVOD_*'
       OR key GLOB 'cvar.*' OR key GLOB 'build_id.*'
       OR key IN ('cpu_model', 'kernel', 'mpi_version'))
  AND NOT (key GLOB 'env.OMPI_MCA_orte_*' OR key GLOB 'env.OMPI_MCA_ess*'
           OR key = 'env.OMPI_MCA_initial_wdir')
ORDER BY key LIMIT 40;

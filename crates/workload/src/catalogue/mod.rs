//! The catalogue of workloads, one file each. To add one, write its file and list it here.

pub use lgwr::LOG_APPENDS;

use crate::workload::Workload;

pub(crate) mod da;
mod da_agg;
mod da_join;
mod da_parallel;
mod da_scan;
mod da_sort;
mod da_window;
mod dbl;
mod dbl_11;
mod dbl_12;
mod dbl_22;
pub(crate) mod dbl_index;
mod dbl_stream;
mod dbwr_ckpt;
mod dbwr_thr;
mod lgwr;
mod lgwr_lat1;
mod lgwr_lat125;
mod lgwr_lat25;
mod lgwr_mixed;
mod lgwr_size;
mod lgwr_thr;
mod pls;
mod pls_add;
mod pls_builtin;
mod pls_fibo;
mod pls_mixed;
mod pls_prime;
mod pls_string;
mod srv;
mod srv_mixed;
mod srv_query1;
mod srv_query25;
mod srv_scan;
mod sto;
mod sto_random;
mod sto_read;
mod sto_read_async;
mod sto_scan;
mod sto_write;
mod tp;
mod tp_heavy;
mod tp_light;
mod tp_lookup;
mod tp_medium;
mod tp_mixed;
mod tp_report;

/// The catalogue, in the order in which a study runs it.
pub static CATALOGUE: &[&Workload] = &[
    &srv_query1::WORKLOAD,
    &srv_query25::WORKLOAD,
    &srv_scan::WORKLOAD,
    &srv_mixed::WORKLOAD,
    &sto_read::WORKLOAD,
    &sto_read_async::WORKLOAD,
    &sto_write::WORKLOAD,
    &sto_scan::WORKLOAD,
    &sto_random::WORKLOAD,
    &lgwr_lat1::WORKLOAD,
    &lgwr_lat25::WORKLOAD,
    &lgwr_lat125::WORKLOAD,
    &lgwr_thr::WORKLOAD,
    &lgwr_mixed::WORKLOAD,
    &lgwr_size::WORKLOAD,
    &dbwr_thr::WORKLOAD,
    &dbwr_ckpt::WORKLOAD,
    &dbl_11::WORKLOAD,
    &dbl_12::WORKLOAD,
    &dbl_22::WORKLOAD,
    &dbl_stream::WORKLOAD,
    &dbl_index::WORKLOAD,
    &da_scan::WORKLOAD,
    &da_agg::WORKLOAD,
    &da_join::WORKLOAD,
    &da_sort::WORKLOAD,
    &da_window::WORKLOAD,
    &da_parallel::WORKLOAD,
    &tp_lookup::WORKLOAD,
    &tp_report::WORKLOAD,
    &tp_light::WORKLOAD,
    &tp_medium::WORKLOAD,
    &tp_heavy::WORKLOAD,
    &tp_mixed::WORKLOAD,
    &pls_add::WORKLOAD,
    &pls_fibo::WORKLOAD,
    &pls_prime::WORKLOAD,
    &pls_string::WORKLOAD,
    &pls_builtin::WORKLOAD,
    &pls_mixed::WORKLOAD,
];

#[cfg(test)]
mod tests;

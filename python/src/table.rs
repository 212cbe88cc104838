//! An Arrow table and its columns. Others take it over the Arrow PyCapsule interface (`__arrow_c_stream__`), without a copy and without
//! this crate knowing of them.

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt64Array,
};
use arrow_schema::Schema;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::failed;

/// A column with its name.
pub(crate) struct Column {
    name: &'static str,
    values: ArrayRef,
}

impl Column {
    /// Texts that are many different ones.
    pub(crate) fn text<'a>(name: &'static str, values: impl Iterator<Item = &'a str>) -> Self {
        Self { name, values: Arc::new(StringArray::from_iter_values(values)) }
    }

    /// Texts that are few different ones: each is kept once, and a number for each row.
    pub(crate) fn word<'a>(name: &'static str, values: impl Iterator<Item = &'a str>) -> Self {
        let mut words = StringDictionaryBuilder::<Int32Type>::new();
        values.for_each(|word| words.append_value(word));
        Self { name, values: Arc::new(words.finish()) }
    }

    /// Whole numbers.
    pub(crate) fn count(name: &'static str, values: impl Iterator<Item = u64>) -> Self {
        Self { name, values: Arc::new(UInt64Array::from_iter_values(values)) }
    }

    /// Numbers, some of which may be missing.
    pub(crate) fn number(name: &'static str, values: impl Iterator<Item = Option<f64>>) -> Self {
        Self { name, values: Arc::new(values.collect::<Float64Array>()) }
    }
}

/// A table in Arrow's format: `pyarrow.table(t)`, `polars.DataFrame(t)`, or `t.to_pandas()`.
#[pyclass(module = "freehold", frozen)]
pub(crate) struct Table(RecordBatch);

impl Table {
    /// A table of columns of one length.
    pub(crate) fn new(columns: Vec<Column>) -> PyResult<Self> {
        let columns = columns.into_iter().map(|column| (column.name, column.values));
        RecordBatch::try_from_iter(columns).map(Self).map_err(failed)
    }

    fn through<'py>(&self, py: Python<'py>, module: &str, function: &str) -> PyResult<Bound<'py, PyAny>> {
        let module = py.import(module).map_err(|_| failed(format!("{module} is not installed")))?;
        module.call_method1(function, (Self(self.0.clone()),))
    }
}

#[pymethods]
impl Table {
    /// The table as a stream of Arrow's C interface, in one piece. Another schema than its own is not made.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer give its own schema whatever is requested.
        let _ = requested_schema;
        let schema: Arc<Schema> = self.0.schema();
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The columns' names.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A column's values as a list: for those who have no library for tables.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let Some(values) = self.0.column_by_name(name) else {
            return Err(failed(format!("no column `{name}`; there are {}", self.column_names().join(", "))));
        };
        let words =
            values.as_dictionary_opt::<Int32Type>().and_then(DictionaryArray::downcast_dict::<StringArray>);
        if let Some(words) = words {
            return words.into_iter().collect::<Vec<_>>().into_bound_py_any(py);
        }
        if let Some(texts) = values.as_string_opt::<i32>() {
            return texts.iter().collect::<Vec<_>>().into_bound_py_any(py);
        }
        if let Some(counts) = values.as_primitive_opt::<UInt64Type>() {
            return counts.iter().collect::<Vec<_>>().into_bound_py_any(py);
        }
        values.as_primitive::<Float64Type>().iter().collect::<Vec<_>>().into_bound_py_any(py)
    }

    /// Bytes that its columns take.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.columns().iter().map(Array::get_array_memory_size).sum()
    }

    /// As a `pyarrow.Table`.
    fn to_pyarrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.through(py, "pyarrow", "table")
    }

    /// As a `polars.DataFrame`.
    fn to_polars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.through(py, "polars", "DataFrame")
    }

    /// As a `pandas.DataFrame`; pyarrow takes it there.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_pyarrow(py)?.call_method0("to_pandas")
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("Table of {} rows: {}", self.0.num_rows(), self.column_names().join(", "))
    }
}

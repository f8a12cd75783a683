"""Results as NetCDF-4 files, like those of `dataset().to_netcdf()` of a trajectory or an answer.

They are written by h5netcdf directly, because importing xarray with pandas takes half a second, a fifth of a short run.
"""

import io
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from odesim.request.trajectory import TIME, Variable


@runtime_checkable
class Labelled(Protocol):
    """Result with variables, coordinates and attributes of its data set."""

    def labelled(self) -> tuple[dict[str, Variable], dict[str, Variable], dict[str, Any]]:
        """Return variables, coordinates and attributes, each by name."""
        ...


def netcdf(result: Labelled, request: Mapping[str, Any]) -> bytes:
    """Return the bytes of the file; `request` are further attributes."""
    import h5netcdf
    import h5py

    variables, coordinates, attributes = result.labelled()
    attributes.pop("declaration", None)  # these are in the manifest, because an attribute of HDF5 has at most 64 kB
    further = " ".join(name for name, values in coordinates.items() if values.dims != (name,))
    memory = io.BytesIO()
    with h5netcdf.File(memory, "w") as file:
        for name, variable in {**variables, **coordinates}.items():
            for dim, size in zip(variable.dims, variable.shape, strict=True):
                if dim not in file.dimensions:
                    file.dimensions[dim] = size
            values, attached = variable.values, {"meaning": variable.meaning}
            if name == "time":
                attached["long_name"] = TIME
            if values.dtype == bool:  # NetCDF has no such type; this is the convention of xarray
                values, attached["dtype"] = values.astype(np.int8), "bool"
            elif values.dtype.kind == "U":
                values = values.astype(h5py.string_dtype())
            if further and "time" in variable.dims and name not in coordinates:
                attached["coordinates"] = further
            written = file.create_variable(name, variable.dims, values.dtype, data=values)
            written.attrs.update(attached)
        file.attrs.update({**attributes, **{k: v for k, v in request.items() if v is not None}})
    return memory.getvalue()

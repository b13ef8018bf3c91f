"""Every error Faceplate raises on purpose.

    FaceplateError                       exit code
    ├── InputError                       2   what the user gave cannot be used
    │   ├── ImageReadError                   truncated, empty, not an image
    │   ├── UnsupportedImageError            deep data, no RGB, zero-sized
    │   ├── SequenceError                    no such sequence, bad pattern or range
    │   │   ├── MissingFrameError            a hole in the sequence
    │   │   └── FrameMismatchError           raster, channels or colour tag change in mid-shot
    │   ├── ColourSpaceError                 unknown or unusable colour space
    │   ├── SettingError                     unknown setting, value out of range
    │   ├── IdentityError                    unreadable .fpid, refused photo
    │   │   └── ConsentError                 consent expired, revoked or out of scope
    │   ├── SidecarError                     unreadable or mismatching .faces.json
    │   ├── ManifestError                    unreadable job manifest
    │   ├── NumbersError                     an engine gave NaN for a frame
    │   └── OutputError                      unwritable, equal to the input, disk full
    │       └── OutputBusyError              another run holds the output
    ├── ResourceError                    3   the machine cannot do it
    │   ├── DeviceError                      device absent, lost
    │   │   └── DeviceMemoryError                out of memory
    │   └── ModelError                       weights absent, hash differs, wrong signature
    │       └── LicenceError                 weights' licence forbids this job
    └── Cancelled                        130 stopped by the user, resumable

An error says what was expected, what was found, and in `hint` what to do next. Errors of other libraries are mapped
where they enter (media, colour, models); only `cli.main` turns an error into an exit code.
"""

from __future__ import annotations


class FaceplateError(Exception):
    """Root of the tree.

    Args:
        message: one sentence, naming the file or value at fault.
        expected: what would have been right, or None where the message says it.
        found: what was there instead.
        hint: the artist's next step; the class has one for where none is better.
    """

    exit_code = 1
    default_hint: str | None = None

    def __init__(
        self, message: str, *, expected: str | None = None, found: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.expected = expected
        self.found = found
        self.hint = hint or self.default_hint

    def __str__(self) -> str:
        parts = [self.message]
        if self.expected is not None:
            parts.append(f"expected {self.expected}")
        if self.found is not None:
            parts.append(f"found {self.found}")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, str | None]:
        """The error as JSON values: `type`, `message`, `expected`, `found`, `hint`."""
        return {
            "type": type(self).__name__,
            "message": self.message,
            "expected": self.expected,
            "found": self.found,
            "hint": self.hint,
        }

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.expected, self.found, self.hint)


def _rebuild(
    kind: type[FaceplateError], message: str, expected: str | None, found: str | None, hint: str | None
) -> FaceplateError:
    return kind(message, expected=expected, found=found, hint=hint)


class InputError(FaceplateError):
    """What the user gave cannot be used."""

    exit_code = 2
    default_hint = "check the command line: faceplate COMMAND --help"


class ImageReadError(InputError):
    """The file is absent, truncated, empty or not an image."""

    default_hint = "check that the file is there and whole: copy it or render it again"


class UnsupportedImageError(InputError):
    """A readable image that Faceplate cannot work on: deep, without RGB, zero-sized."""

    default_hint = "write the picture as flat RGB or RGBA"


class SequenceError(InputError):
    """No such sequence, or a pattern or range that cannot be understood."""

    default_hint = "check the pattern and the range against the files on disk"


class MissingFrameError(SequenceError):
    """A frame inside the range has no file."""


class FrameMismatchError(SequenceError):
    """A frame differs from the first one in raster, channels or colour tag."""


class ColourSpaceError(InputError):
    """A colour space that the configuration does not know or cannot convert."""

    default_hint = "name the space of the plate with --input-space"


class SettingError(InputError):
    """An unknown setting or a value outside its range."""

    default_hint = "faceplate apply --help and the README list what can be set"


class IdentityError(InputError):
    """An identity file that cannot be read, or a photo that cannot make one."""

    default_hint = "make the identity again: faceplate identity make"


class ConsentError(IdentityError):
    """The consent record forbids this job: expired, revoked, other project."""


class SidecarError(InputError):
    """A .faces.json that cannot be read or belongs to other frames."""

    default_hint = "correct the file, or make it anew: faceplate analyse"


class ManifestError(InputError):
    """A job manifest that cannot be read."""

    default_hint = "delete the job folder to render all frames again"


class NumbersError(InputError):
    """An engine gave numbers for a frame that are no picture: NaN where the plate has light."""

    default_hint = "use --precision float32, or another model; faceplate models verify shows which files are whole"


class OutputError(InputError):
    """The output cannot be written: permissions, no space, same as the input."""

    default_hint = "choose another output, or make room and permission for this one"


class OutputBusyError(OutputError):
    """Another run is writing this output."""


class ResourceError(FaceplateError):
    """The machine lacks what the job needs."""

    exit_code = 3


class DeviceError(ResourceError):
    """The device is absent or lost."""

    default_hint = "faceplate doctor shows what this machine offers"


class DeviceMemoryError(DeviceError):
    """The device has too little memory for a frame or a net."""

    default_hint = "close other programs that use the device, or work on fewer frames at once: --threads"


class ModelError(ResourceError):
    """Weights are absent, differ from their recorded hash or have another signature."""

    default_hint = "faceplate models verify shows which files are whole"


class LicenceError(ModelError):
    """The licence of the weights forbids this job."""


class Cancelled(FaceplateError):
    """Stopped by the user; the job can be resumed."""

    exit_code = 130
    default_hint = "run the same command again to go on where it stopped"

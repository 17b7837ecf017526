"""What `nvidia-smi` reports: the reference that shares no code with Pulsetrain."""

# What nvidia-smi writes in the place of a value.
ABSENT = ("N/A", "[N/A]", "[Not Supported]", "[Requested functionality has been deprecated]", "[Unknown Error]", "[GPU requires reset]", "")


def query(context, fields, gpu=None):
    """The fields of one GPU or of all, as lists of texts without units."""
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    command += ["-i", str(gpu)] if gpu is not None else []
    output = context.run(command, label="smi")
    lines = [line for line in output.splitlines() if line.strip()]
    return [[cell.strip() for cell in line.split(", ")] for line in lines]


def is_absent(text):
    return text.strip() in ABSENT


def number(text):
    """The number of a cell, or `None`."""
    if is_absent(text):
        return None
    try:
        return float(text.split()[0])
    except ValueError:
        return None


def has_field(context, field):
    """Whether this nvidia-smi knows a field."""
    code, output = context.try_run(["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"], label="smi-field")
    return code == 0 and "not a valid field" not in output


def gpus(context):
    return len(query(context, ["index"]))

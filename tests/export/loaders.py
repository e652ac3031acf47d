"""What loads each kind of exported model: the encoder, each of the loaders."""

LOADERS = {
    "encoder": ("hub.load", "hub.KerasLayer", "TFSMLayer", "saved_model_cli"),
    "preprocessor": ("hub.load", "hub.KerasLayer"),
    "mlm": ("hub.load", "saved_model_cli"),
    "classifier": ("hub.load", "TFSMLayer"),
    "qa": ("hub.load", "hub.KerasLayer"),
}

/// The version of the protocol that a connection speaks.
public enum ProtocolVersion: Sendable {
    /// Without subprotocol and without `protocolVersion`: values in base64, mangled targets.
    case v1
    /// As 1, with `"protocolVersion": 2` in the invocation.
    case v2
    /// Subprotocol `trebuchet.v3`: values as inline JSON, readable targets.
    case v3

    package static let subprotocol = "trebuchet.v3"

    /// Written out, because the synthesised one is called through a witness table from other modules, in every call.
    @inlinable
    public static func == (first: Self, second: Self) -> Bool {
        switch (first, second) {
        case (.v1, .v1), (.v2, .v2), (.v3, .v3): true
        default: false
        }
    }
}

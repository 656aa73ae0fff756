/// The version of the protocol that a connection speaks.
package enum ProtocolVersion: UInt8, Sendable {
    /// Without subprotocol and without `protocolVersion`: values in base64, mangled targets.
    case v1 = 1
    /// As 1, with `"protocolVersion": 2` in the invocation.
    case v2 = 2
    /// Subprotocol `trebuchet.v3`: values as inline JSON, readable targets.
    case v3 = 3

    package static let subprotocol = "trebuchet.v3"
}

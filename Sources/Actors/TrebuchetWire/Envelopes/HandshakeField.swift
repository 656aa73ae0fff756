/// The handshake fields defined by Trebuchet.
package enum HandshakeField {
    /// The request field with the maximum message size that the client accepts, in bytes.
    package static let messageSize = "Trebuchet-Message-Size"
    /// The response field with the name of the connection.
    package static let session = "Trebuchet-Session"

    /// Returns the number of the server that assigned the name of a connection, which starts with the number; 0 for other names.
    package static func server(ofSession name: String?) -> UInt64 {
        name?.split(separator: ".").first.flatMap { UInt64($0, radix: 36) } ?? 0
    }
}

/// The version of the protocol on a connection.
package enum ProtocolVersion {
    /// The subprotocol that clients of version 3 offer. Clients without a subprotocol use version 1 or 2; a `LegacyTranslator`
    /// translates for their session.
    package static let subprotocol = "trebuchet.v3"
}

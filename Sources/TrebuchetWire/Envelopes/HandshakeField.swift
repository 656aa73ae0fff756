/// The fields of a connection's handshake that are ours.
package enum HandshakeField {
    /// Of the client's request: how large a message it takes, in bytes.
    package static let messageSize = "Trebuchet-Message-Size"
    /// Of the server's answer: the name of the connection.
    package static let session = "Trebuchet-Session"

    /// The number of the server that has given a connection its name, with which the name begins; 0 when it is none of ours.
    package static func server(ofSession name: String?) -> UInt64 {
        name?.split(separator: ".").first.flatMap { UInt64($0, radix: 36) } ?? 0
    }
}

/// The version of the protocol that a connection speaks.
package enum ProtocolVersion {
    /// What a client of version 3 offers. Who offers nothing speaks version 1 or 2, and has a `LegacyTranslator` between it and its
    /// session.
    package static let subprotocol = "trebuchet.v3"
}

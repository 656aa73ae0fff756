/// The version of the protocol that a connection speaks.
package enum ProtocolVersion {
    /// What a client of version 3 offers. Who offers nothing speaks version 1 or 2, and has a `LegacyTranslator` between it and its
    /// session.
    package static let subprotocol = "trebuchet.v3"
}

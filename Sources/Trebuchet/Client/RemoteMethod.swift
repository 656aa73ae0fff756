/// What a client knows of a method that it calls.
struct RemoteMethod {
    /// The name on the wire.
    let name: String
    let isIdempotent: Bool
}

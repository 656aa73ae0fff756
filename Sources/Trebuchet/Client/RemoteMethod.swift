/// What a client knows of a method that it calls.
struct RemoteMethod {
    /// The name on the wire.
    let name: String
    let isIdempotent: Bool
    /// Generic parameters of its own; nil when its dispatch table is not known here.
    let generics: Int?
}

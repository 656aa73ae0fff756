public import Trebuchet
@_exported public import TrebuchetServicesClient
@_exported public import TrebuchetServicesModel

extension TrebuchetBackend {
    /// Creates a backend that authenticates each connection and stores its session.
    ///
    /// - Parameters:
    ///   - credentials: the storage for the session, which is resumed after a restart. Default: in memory.
    ///   - options: options of the client; their `token` is not used. Default: ``options``.
    public convenience init(
        transport: TrebuchetTransport, credentials: any CredentialStore = InMemoryCredentialStore(),
        options: TrebuchetClient.Options = TrebuchetBackend.options
    ) {
        let any: any ClientTransport = transport
        self.init(transport: any, credentials: credentials, options: options)
    }

    /// - Parameter sleep: waits for the next renewal of the session.
    package convenience init(
        transport: TrebuchetTransport, credentials: any CredentialStore, options: TrebuchetClient.Options,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        let any: any ClientTransport = transport
        self.init(transport: any, credentials: credentials, options: options, sleep: sleep)
    }
}

internal import TrebuchetActors

/// A lease that keeps a client connected. The client, references to actors, and streams retain it. When the last reference is
/// released, the connection is closed.
final class ClientConnectionLease: RemoteServer {
    let core: ClientCore

    init(_ core: ClientCore) { self.core = core }

    deinit {
        let core = core
        core.system?.releaseReferences()
        Task { await core.connection.close() }
    }

    var peerName: String { core.peerName }
    var serverNumber: UInt64 { core.serverNumber }
    var methods: RemoteMethods { core.methods }
    var errors: ErrorTypes { core.errors }
    var exportedActors: ExportedActors { core.exportedActors }

    func reachesSameAddress(as other: any RemoteServer) -> Bool {
        (other as? ClientConnectionLease).map { core.reachesSameAddress(as: $0.core) } ?? false
    }

    func call(
        actorID: String, target: String, _ request: CallRequest, isIdempotent: Bool
    ) async throws -> [UInt8]? {
        try await core.options.interceptors.isEmpty
            ? core.call(actorID: actorID, target: target, request, isIdempotent: isIdempotent)
            : core.interceptedCall(actorID: actorID, target: target, request, isIdempotent: isIdempotent)
    }

    func observe(_ target: StreamTarget, reading: StreamReading, incremental: (any IncrementalState)?) -> EncodedStream
    {
        core.observe(target, reading: reading, incremental: incremental, holding: self)
    }
}

internal import TrebuchetWire

/// A server as its client reaches it. References to actors and streams hold this object, which keeps the client connected.
package protocol RemoteServer: AnyObject, Sendable {
    /// The name of the server in messages: `ws://localhost:8080`.
    var peerName: String { get }
    /// The number with which the names of its connections begin; 0 until it is known.
    var serverNumber: UInt64 { get }
    /// The methods called on this server so far.
    var methods: RemoteMethods { get }
    /// The errors of this server that can be decoded to their types.
    var errors: ErrorTypes { get }
    /// The local actors that the server may call.
    var exportedActors: ExportedActors { get }

    /// Returns whether another client has the same server, as far as addresses can show.
    func reachesSameAddress(as other: any RemoteServer) -> Bool

    /// Sends a call and waits for its response: the result as JSON, nil for a method without a result.
    func call(
        actorID: String, target: String, _ request: CallRequest, isIdempotent: Bool
    ) async throws -> [UInt8]?

    /// Starts the observation of a state or of events.
    ///
    /// - Parameter incremental: stores the value of a state whose type records its changes.
    func observe(_ target: StreamTarget, reading: StreamReading, incremental: (any IncrementalState)?) -> EncodedStream
}

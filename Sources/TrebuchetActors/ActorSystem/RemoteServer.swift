internal import TrebuchetWire

/// A server as its client reaches it: what references to its actors and their streams are made of. Whoever holds it keeps the
/// client connected.
package protocol RemoteServer: AnyObject, Sendable {
    /// For messages: `ws://localhost:8080`.
    var peerName: String { get }
    /// By the number that names of its connections begin with; 0 until it is known.
    var serverNumber: UInt64 { get }
    /// The methods that were called there.
    var methods: RemoteMethods { get }
    /// The errors that can be made again from what it sends.
    var errors: ErrorTypes { get }
    /// The actors here that it may call.
    var handed: HandedActors { get }

    /// Whether another client has the same server, as far as addresses tell.
    func reachesSameAddress(as other: any RemoteServer) -> Bool

    /// Sends a call and waits for its answer: the result in JSON, nil for a method without one.
    func call(
        actorID: String, target: String, _ request: CallRequest, isIdempotent: Bool
    ) async throws -> [UInt8]?

    /// Begins to observe a state, or events.
    ///
    /// - Parameter kept: where the value is kept, when its type knows its changes.
    func observe(_ target: StreamTarget, reading: StreamReading, kept: (any KeptState)?) -> EncodedStream
}

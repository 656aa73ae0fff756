internal import Relays

extension TrebuchetClient {
    /// How long a call may wait for its answer.
    package var callTimeout: Duration? { core.options.callTimeout }

    /// Calls a method by name with arguments in JSON, and returns the result in JSON: for tools that know no types.
    package func call(actor: String, target: String, arguments: [[UInt8]]) async throws -> [UInt8]? {
        try await core.call(actorID: actor, target: target, CallRequest(arguments: arguments, generics: []))
    }

    /// Observes a state by name; its values come in JSON.
    package func observe(actor: String, stream: String) -> RawStateStream {
        RawStateStream(stream: core.observe(actorID: actor, target: stream))
    }
}

/// The values of a state in JSON, the newest each time. Throws a `TrebuchetError` when the stream ends other than in
/// order.
package struct RawStateStream: AsyncSequence {
    package typealias Element = [UInt8]

    let stream: RemoteStream

    package func makeAsyncIterator() -> Iterator { Iterator(stream) }

    package struct Iterator: AsyncIteratorProtocol {
        private let stream: RemoteStream
        private var states: StateRelay<RemoteStream.State>.Stream.Iterator
        private var seen: UInt64 = 0

        init(_ stream: RemoteStream) {
            self.stream = stream
            states = stream.relay.stream.makeAsyncIterator()
        }

        package mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
            while let state = await states.next(isolation: actor) {
                if let update = state.update, state.count > seen {
                    seen = state.count
                    return update
                }
                if state.outcome != nil { break }
            }
            if case .failed(let error) = stream.relay.currentValue.outcome { throw error }
            return nil
        }
    }
}

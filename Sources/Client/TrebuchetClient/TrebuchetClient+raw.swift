internal import Relays
package import TrebuchetWire

extension TrebuchetClient {
    /// The handler for values that readers cannot decode.
    package var reportUndecodable: @Sendable (UndecodableValue) -> Void { core.options.reportUndecodable }

    /// The time limit for the response of a call.
    package var callTimeout: Duration? { core.options.callTimeout }

    /// Calls a method by name with arguments in JSON, and returns the result in JSON: for tools without the Swift types.
    package func call(actor: String, target: String, arguments: [[UInt8]]) async throws -> [UInt8]? {
        try await connectionLease.call(
            actorID: actor, target: target, CallRequest(arguments: arguments, generics: []), isIdempotent: false)
    }

    /// Observes a state or events by name; the values are JSON.
    package func observe(actor: String, stream: String, filter: StreamFilter? = nil) -> RawStream {
        let target = StreamTarget(actorID: actor, name: stream, filter: filter)
        return RawStream(
            stream: core.observe(target, reading: .every(buffer: RawStream.buffer), holding: connectionLease))
    }
}

/// The values of a stream in JSON. The oldest are dropped for a reader with more than 4,096 unread values. Throws a
/// `TrebuchetError` unless the stream ends in order.
package struct RawStream: AsyncSequence {
    package typealias Element = [UInt8]

    static let buffer = 4_096

    let stream: EncodedStream

    package func makeAsyncIterator() -> Iterator { Iterator(stream) }

    /// An iterator over the values.
    package struct Iterator: AsyncIteratorProtocol {
        private let stream: EncodedStream
        private var first: EncodedStream.EncodedValue?
        private var rest: EventSubscription<EncodedStream.EncodedValue>.Iterator?
        private var seen: UInt64 = 0

        init(_ stream: EncodedStream) {
            self.stream = stream
            let each = stream.subscribeToEach(onOverflow: .dropOldest)
            first = each?.first
            rest = each?.rest.makeAsyncIterator()
        }

        package mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
            if let first {
                seen = first.count
                self.first = nil
                return first.text
            }
            while let taken = try await rest?.next(isolation: actor) {
                guard taken.count > seen else { continue }
                seen = taken.count
                return taken.text
            }
            if case .failed(let error) = stream.relay.currentValue.outcome { throw error }
            return nil
        }
    }
}

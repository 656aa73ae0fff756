public import Distributed
internal import Relays
internal import TrebuchetWire

/// The values of a streamed state, the newest for whoever asks.
///
/// Each iterator gets the current value first and then, each time, the newest one it has not seen: never an older one,
/// never the same version twice; versions that came while it was busy are skipped, and so are those that do not decode
/// (`decodingError`). The subscription at the server ends
/// when the stream and its iterators are gone.
public struct StateStream<Value: Codable & Sendable>: AsyncSequence, Sendable {
    public typealias Element = Value
    public typealias Failure = Never

    private let origin: StreamOrigin<Value>

    init(_ origin: StreamOrigin<Value>) { self.origin = origin }

    /// Why the stream ended; nil while it goes on.
    public var outcome: StreamOutcome? { origin.outcome }

    /// Why the newest version that an iterator has come to does not decode, while iterators wait for one that does; nil otherwise.
    ///
    /// A newer server may send what this program does not know. Each such version is reported to
    /// `TrebuchetClient.Options.onUndecodable` too.
    public var decodingError: TrebuchetError? {
        guard case .encoded(let stream, _) = origin else { return nil }
        return stream.undecodable.error
    }

    public func makeAsyncIterator() -> Iterator { Iterator(origin) }

    /// The newest value of an actor at a server that has come, taken by an iterator or not, if it is one after the first
    /// `seen`; nil as well for one that does not decode.
    package func newest(after seen: UInt64) -> (value: Value, count: UInt64)? {
        guard case .encoded(let stream, let kept) = origin else { return nil }
        return stream.newest(Value.self, after: seen, kept: kept)
    }

    /// Whether both were begun as one.
    package func isSame(as other: StateStream) -> Bool {
        guard case .encoded(let own, _) = origin, case .encoded(let others, _) = other.origin else { return false }
        return own === others
    }

    public struct Iterator: AsyncIteratorProtocol {
        private let origin: StreamOrigin<Value>
        private var reader: StreamReader<Value>
        /// The version of the last value returned.
        package var seen: UInt64 { reader.seen }

        init(_ origin: StreamOrigin<Value>) {
            self.origin = origin
            reader = StreamReader(origin)
        }

        /// The newest value that was not returned yet; nil when the stream has ended or the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Value? {
            while let version = await nextVersion(isolation: actor) {
                if case .success(let value) = version { return value }
            }
            return nil
        }

        /// The same, or why the newest version does not decode.
        package mutating func nextVersion(
            isolation actor: isolated (any Actor)?
        ) async -> Result<Value, TrebuchetError>? {
            do throws(EventOverflow) {
                return try await reader.next(isolation: actor)
            } catch {
                origin.fail(error)
                return nil
            }
        }
    }
}

/// The values of a streamed state, with an error when the stream ends other than in order.
public struct ThrowingStateStream<A: DistributedActor, Value: Codable & Sendable>: AsyncSequence, Sendable
where A.ActorSystem == TrebuchetActorSystem {
    public typealias Element = Value

    let observation: StateObservation<A, Value>

    public func makeAsyncIterator() -> Iterator { Iterator(observation: observation) }

    public struct Iterator: AsyncIteratorProtocol {
        let observation: StateObservation<A, Value>
        private var stream: StateStream<Value>?
        private var values: StateStream<Value>.Iterator?

        init(observation: StateObservation<A, Value>) { self.observation = observation }

        /// The newest value that was not returned yet; nil when the stream ended in order.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(TrebuchetError) -> Value? {
            if values == nil {
                let begun = await observation()
                stream = begun
                values = begun.makeAsyncIterator()
            }
            if let value = await values?.next(isolation: actor) { return value }
            if case .failed(let error) = stream?.outcome { throw error }
            return nil
        }
    }
}

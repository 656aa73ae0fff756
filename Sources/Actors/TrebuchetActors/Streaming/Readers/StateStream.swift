public import Distributed
internal import Relays
internal import TrebuchetWire

/// The values of a streamed state; each read returns the newest.
///
/// Each iterator returns the current value first and then, each time, the newest one it has not returned: never an older one,
/// and never the same version twice. Versions that arrive while the iterator is not reading are skipped, as are those that do
/// not decode (`decodingError`). The subscription at the server ends when the stream and its iterators are released.
public struct StateStream<Value: Codable & Sendable>: AsyncSequence, Sendable {
    public typealias Element = Value
    public typealias Failure = Never

    private let origin: StreamOrigin<Value>

    init(_ origin: StreamOrigin<Value>) { self.origin = origin }

    /// The reason for the end of the stream; nil while it is active.
    public var outcome: StreamOutcome? { origin.outcome }

    /// The error of the newest version an iterator has reached, while iterators wait for one that decodes; nil otherwise.
    ///
    /// A newer server may send forms that this program does not support. Each such version is also reported to
    /// `TrebuchetClient.Options.onUndecodable`.
    public var decodingError: TrebuchetError? {
        guard case .encoded(let stream, _) = origin else { return nil }
        return stream.undecodable.error
    }

    public func makeAsyncIterator() -> Iterator { Iterator(origin) }

    /// Returns the newest value received from a server, read by an iterator or not, if it comes after the first `seen` values;
    /// nil also if it does not decode.
    package func newest(after seen: UInt64) -> (value: Value, count: UInt64)? {
        guard case .encoded(let stream, let incremental) = origin else { return nil }
        return stream.newest(Value.self, after: seen, incremental: incremental)
    }

    /// Returns whether both streams share one observation.
    package func isSame(as other: StateStream) -> Bool {
        guard case .encoded(let own, _) = origin, case .encoded(let others, _) = other.origin else { return false }
        return own === others
    }

    /// Reads the values of a stream, the newest each time.
    public struct Iterator: AsyncIteratorProtocol {
        private let origin: StreamOrigin<Value>
        private var reader: StreamReader<Value>
        /// The version of the last value returned.
        package var seen: UInt64 { reader.seen }

        init(_ origin: StreamOrigin<Value>) {
            self.origin = origin
            reader = StreamReader(origin)
        }

        /// Returns the newest value that was not returned yet; nil after the stream has ended or the task was cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Value? {
            while let version = await nextVersion(isolation: actor) {
                if case .success(let value) = version { return value }
            }
            return nil
        }

        /// Returns the newest value that was not returned yet, or its decoding error.
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

/// The values of a streamed state, with an error if the stream does not end regularly.
public struct ThrowingStateStream<A: DistributedActor, Value: Codable & Sendable>: AsyncSequence, Sendable
where A.ActorSystem == TrebuchetActorSystem {
    public typealias Element = Value

    let observation: StateObservation<A, Value>

    public func makeAsyncIterator() -> Iterator { Iterator(observation: observation) }

    /// Starts the observation with its first read, and then reads the values.
    public struct Iterator: AsyncIteratorProtocol {
        let observation: StateObservation<A, Value>
        private var stream: StateStream<Value>?
        private var values: StateStream<Value>.Iterator?

        init(observation: StateObservation<A, Value>) { self.observation = observation }

        /// Returns the newest value that was not returned yet; nil after the stream has ended regularly.
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

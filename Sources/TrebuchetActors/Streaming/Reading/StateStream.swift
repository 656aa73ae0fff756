public import Distributed
internal import Relays
internal import TrebuchetWire

/// How a stream of states ended.
public enum StreamOutcome: Sendable, Equatable {
    /// In order: the server or this side ended it.
    case completed
    /// Otherwise: the connection was closed, the actor went, or the server reported an error.
    case failed(TrebuchetError)
}

/// The values of a streamed state, the newest for whoever asks.
///
/// Each iterator gets the current value first and then, each time, the newest one it has not seen: never an older one,
/// never the same version twice; versions that came while it was busy are skipped. The subscription at the server ends
/// when the stream and its iterators are gone.
public struct StateStream<Value: Codable & Sendable>: AsyncSequence, Sendable {
    public typealias Element = Value
    public typealias Failure = Never

    enum Source: Sendable {
        case local(LocalObservation<Value>)
        case remote(RemoteStream)
        case failed(TrebuchetError)
    }

    private let source: Source

    init(local: LocalObservation<Value>) { source = .local(local) }
    init(remote: RemoteStream) { source = .remote(remote) }
    init(failed error: TrebuchetError) { source = .failed(error) }

    /// Why the stream ended; nil while it goes on.
    public var outcome: StreamOutcome? {
        switch source {
        case .local(let local):
            if let overflow = local.each?.overflow.currentValue {
                .failed(overflow)
            } else {
                local.versions.isFinished ? .failed(Self.actorGone) : nil
            }
        case .remote(let remote): remote.relay.currentValue.outcome
        case .failed(let error): .failed(error)
        }
    }

    private static var actorGone: TrebuchetError { TrebuchetError(.actorNotFound, "the actor is gone") }

    public func makeAsyncIterator() -> Iterator { Iterator(source) }

    /// The newest value of an actor at a server that has come, taken by an iterator or not, if it is one after the first
    /// `seen`; nil as well for one that does not decode, which ends the stream for those who iterate.
    package func newest(after seen: UInt64) -> (value: Value, count: UInt64)? {
        guard case .remote(let remote) = source else { return nil }
        return remote.newest(Value.self, after: seen)
    }

    /// Whether both were begun as one.
    package func isSame(as other: StateStream) -> Bool {
        guard case .remote(let own) = source, case .remote(let others) = other.source else { return false }
        return own === others
    }

    public struct Iterator: AsyncIteratorProtocol {
        private let source: Source
        private var versions: StateRelay<UInt64>.Stream.Iterator?
        private var updates: StateRelay<RemoteStream.State>.Stream.Iterator?
        private var kept: (any KeptState<Value>)?
        private var each: EachValue<Value>.Iterator?
        /// The version of the last value returned.
        private var lastSeen: UInt64 = 0
        package var seen: UInt64 { each?.seen ?? lastSeen }

        init(_ source: Source) {
            self.source = source
            switch source {
            case .local(let local):
                versions = local.versions.stream.makeAsyncIterator()
                each = local.each.map { EachValue<Value>.Iterator(local, $0) }
            case .remote(let remote):
                updates = remote.relay.stream.makeAsyncIterator()
                kept = remote.kept.flatMap { $0 as? any KeptState<Value> }
                each = EachValue<Value>.Iterator(remote)
            case .failed: break
            }
        }

        /// The newest value that was not returned yet; nil when the stream has ended or the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Value? {
            if each != nil { return await each?.next(isolation: actor) }
            return switch source {
            case .failed: nil
            case .local(let local): await nextLocal(local, isolation: actor)
            case .remote(let remote): await nextRemote(remote, isolation: actor)
            }
        }

        private mutating func nextLocal(
            _ local: LocalObservation<Value>, isolation actor: isolated (any Actor)?
        ) async -> Value? {
            while await versions?.next(isolation: actor) != nil {
                guard let (value, version) = await local.read() else { return nil }
                // The relay may tell of a version that was read with the one before.
                guard version > lastSeen else { continue }
                lastSeen = version
                return value
            }
            return nil
        }

        private mutating func nextRemote(
            _ remote: RemoteStream, isolation actor: isolated (any Actor)?
        ) async -> Value? {
            while let state = await updates?.next(isolation: actor) {
                if state.count > lastSeen, let (value, count) = remote.value(Value.self, of: state, kept: kept) {
                    // What is kept may be newer than what the relay told, but is not what this reader has got already.
                    guard count > lastSeen else { continue }
                    lastSeen = count
                    return value
                }
                if state.outcome != nil || remote.relay.currentValue.outcome != nil { return nil }
            }
            return nil
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

internal import Distributed
internal import Relays
internal import TrebuchetWire

/// The origin of a reader's values.
enum StreamOrigin<Value: Codable & Sendable>: Sendable {
    /// A state of an actor in this process.
    case local(LocalObservation<Value>)
    /// Events of an actor in this process, shared by all readers of the stream.
    case localEvents(EventSubscription<Value>)
    /// A state or events as JSON values.
    ///
    /// - Parameter incremental: the incremental state of the stream, if its type records changes.
    case encoded(EncodedStream, incremental: (any IncrementalState<Value>)? = nil)
    case failed(TrebuchetError)

    /// The reason for the end; nil while the stream is active.
    var outcome: StreamOutcome? {
        switch self {
        case .local(let local):
            if let overflow = local.overflow.currentValue {
                .failed(overflow)
            } else {
                local.states.versions.isFinished ? .failed(LocalStreams.actorNotFound) : nil
            }
        // A reader received nil, which has two possible reasons.
        case .localEvents: Task.isCancelled ? nil : .failed(LocalStreams.actorNotFound)
        case .encoded(let stream, _): stream.relay.currentValue.outcome
        case .failed(let error): .failed(error)
        }
    }

    /// Whether the stream ends with the first event that does not decode.
    var endsAtUndecodable: Bool { if case .encoded(let stream, _) = self { stream.endsAtUndecodable } else { false } }

    /// Ends the stream after a reader of a state fell too far behind.
    func fail(_ overflow: EventOverflow) {
        switch self {
        case .local(let local): local.overflow.update(TrebuchetError(overflow))
        case .encoded(let stream, _): stream.relay.fail(TrebuchetError(overflow))
        case .localEvents, .failed: break
        }
    }
}

extension StreamOrigin {
    /// Returns a stream of an actor outside this process.
    static func remote<A: DistributedActor>(
        _ actor: A, _ name: String, filter: StreamFilter? = nil, reading: StreamReading = .latest,
        incremental: (any IncrementalState<Value>)? = nil
    ) -> Self where A.ActorSystem == TrebuchetActorSystem {
        guard let server = actor.actorSystem.server(of: actor.id) else {
            return .failed(actor.actorSystem.unreachable(actor.id))
        }
        let target = StreamTarget(actorID: actor.id.id, name: name, filter: filter)
        return .encoded(server.observe(target, reading: reading, incremental: incremental), incremental: incremental)
    }
}

/// Reads one stream: each new value or the newest, none twice.
struct StreamReader<Value: Codable & Sendable> {
    /// The source of the next value.
    private enum Feed {
        case newest(LocalObservation<Value>, StateRelay<UInt64>.Stream.Iterator)
        case each(LocalObservation<Value>, EventSubscription<LocalStates<Value>.Version>.Iterator)
        case events(EventSubscription<Value>.Iterator)
        case newestText(EncodedStream, StateRelay<EncodedStream.State>.Stream.Iterator, (any IncrementalState<Value>)?)
        case eachText(
            EncodedStream, first: EncodedStream.EncodedValue?, EventSubscription<EncodedStream.EncodedValue>.Iterator)
        case nothing
    }

    private var feed: Feed
    /// The version of the last value returned, or the count of values at that time.
    private(set) var seen: UInt64 = 0

    init(_ origin: StreamOrigin<Value>) {
        switch origin {
        case .local(let local):
            if let each = local.states.each {
                let versions = each.relay.subscribe(bufferLimit: each.buffer, onOverflow: .fail)
                feed = .each(local, versions.makeAsyncIterator())
            } else {
                feed = .newest(local, local.states.versions.stream.makeAsyncIterator())
            }
        case .localEvents(let events): feed = .events(events.makeAsyncIterator())
        case .encoded(let stream, let incremental):
            if let events = stream.events {
                feed = .eachText(stream, first: nil, events.makeAsyncIterator())
            } else if let (first, rest) = stream.subscribeToEach() {
                feed = .eachText(stream, first: first, rest.makeAsyncIterator())
            } else {
                feed = .newestText(stream, stream.relay.stream.makeAsyncIterator(), incremental)
            }
        case .failed: feed = .nothing
        }
    }

    private mutating func isNew(_ count: UInt64) -> Bool {
        guard count > seen else { return false }
        seen = count
        return true
    }

    /// Returns the next value or its decoding error; nil after the end or if the task was cancelled.
    mutating func next(
        isolation actor: isolated (any Actor)?
    ) async throws(EventOverflow) -> Result<Value, TrebuchetError>? {
        switch feed {
        case .newest(let local, var versions):
            defer { feed = .newest(local, versions) }
            while await versions.next(isolation: actor) != nil {
                guard let newest = await local.read() else { return nil }
                // The relay may report a version that was read together with the one before.
                if isNew(newest.version) { return .success(newest.value) }
            }
            return nil
        case .each(let local, var versions):
            defer { feed = .each(local, versions) }
            if seen == 0 {
                guard let newest = await local.read(), isNew(newest.version) else { return nil }
                return .success(newest.value)
            }
            while let next = try await versions.next(isolation: actor) {
                if isNew(next.version) { return .success(next.value) }
            }
            return nil
        case .events(var events):
            defer { feed = .events(events) }
            return try await events.next(isolation: actor).map { .success($0) }
        case .newestText(let stream, var states, let incremental):
            defer { feed = .newestText(stream, states, incremental) }
            while let state = await states.next(isolation: actor) {
                if state.count > seen,
                    let (value, count) = stream.value(Value.self, of: state, incremental: incremental)
                {
                    // The stored value may be newer than the reported one, but this reader may have returned it already.
                    guard isNew(count) else { continue }
                    return value
                }
                if state.outcome != nil || stream.relay.currentValue.outcome != nil { return nil }
            }
            return nil
        case .eachText(let stream, var first, var rest):
            var isOver = false
            defer { feed = isOver ? .nothing : .eachText(stream, first: first, rest) }
            if let begun = first.take(), isNew(begun.count),
                let version = stream.version(Value.self, begun.text, count: begun.count)
            {
                return version
            }
            while let taken = try await rest.next(isolation: actor) {
                guard isNew(taken.count) else { continue }
                guard stream.events != nil else {
                    if let version = stream.version(Value.self, taken.text, count: taken.count) { return version }
                    continue
                }
                let event = stream.event(Value.self, taken)
                if case .failure = event { isOver = stream.endsAtUndecodable }
                return event
            }
            return nil
        case .nothing: return nil
        }
    }
}

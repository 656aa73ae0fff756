internal import Relays
internal import TrebuchetWire

/// The way in which a stream is read.
package enum StreamReading {
    /// The newest value.
    case latest
    /// Each value from the newest on, with at most `buffer` unread ones.
    case every(buffer: Int)
    /// Each event after a bookmark or from now on, with at most `buffer` unread ones.
    case events(buffer: Int, since: EventBookmark? = nil, onUndecodable: UndecodableEvents = .skip)
}

/// The outcome of a state stream.
public enum StreamOutcome: Sendable, Equatable {
    /// The server or this side ended the stream regularly.
    case completed
    /// The connection was closed, the actor was deactivated, or the server reported an error.
    case failed(TrebuchetError)
}

/// A state or event stream that is observed through its JSON values: at a server, or in this process through a filter. The
/// sender of the values is notified when the last reader releases the stream.
package final class EncodedStream: Sendable {
    /// The state of the stream.
    package struct State: Sendable {
        /// The newest value as JSON; nil also while `incrementalState` contains it.
        package var update: [UInt8]?
        /// The number of values received, across epochs.
        package var count: UInt64 = 0
        package var outcome: StreamOutcome?
    }

    /// One value as JSON.
    package struct EncodedValue: Sendable {
        package let text: [UInt8]
        package let count: UInt64
        /// The position after an event; nil for a state.
        let bookmark: EventBookmark?

        package init(text: [UInt8], count: UInt64, bookmark: EventBookmark? = nil) {
            self.text = text
            self.count = count
            self.bookmark = bookmark
        }
    }

    package let relay: StateRelay<State>
    /// Set for streams in which each value counts. Values of events are stored only here.
    package let each: EventRelay<EncodedValue>?
    /// The reader of events, created before the first event.
    package let events: EventSubscription<EncodedValue>?
    /// The position of the readers of events.
    package let position: EventReadPosition?
    private let reading: StreamReading
    /// The value of a state that records its changes. Received changes are applied to it.
    package let incrementalState: (any IncrementalState)?
    /// The values that could not be decoded.
    let undecodable: UndecodableValues
    private let filter: StreamFilter?
    private let userInfo: [CodingUserInfoKey: any Sendable]
    private let restart: @Sendable () -> Void
    private let release: @Sendable () -> Void

    /// Creates a stream.
    ///
    /// - Parameters:
    ///   - target: the identity of the stream.
    ///   - report: receives values that readers could not decode.
    ///   - restart: requests a whole value, because changes do not fit the current one.
    ///   - release: called when the last reader has released the stream.
    package init(
        of target: StreamTarget, relay: StateRelay<State> = StateRelay(State()), reading: StreamReading = .latest,
        incrementalState: (any IncrementalState)? = nil, userInfo: [CodingUserInfoKey: any Sendable],
        report: @escaping @Sendable (UndecodableValue) -> Void = UndecodableValue.warn,
        restart: @escaping @Sendable () -> Void = {},
        release: @escaping @Sendable () -> Void
    ) {
        self.relay = relay
        self.reading = reading
        switch reading {
        case .latest: (each, events, position) = (nil, nil, nil)
        case .every: (each, events, position) = (EventRelay(), nil, nil)
        case .events(let buffer, let since, _):
            let relay = EventRelay<EncodedValue>()
            (each, events) = (relay, relay.subscribe(bufferLimit: buffer, onOverflow: .fail))
            position = EventReadPosition(since)
        }
        self.incrementalState = incrementalState
        undecodable = UndecodableValues(of: target, report)
        filter = target.filter
        self.userInfo = userInfo
        self.restart = restart
        self.release = release
    }

    deinit { release() }

    /// Returns the newest value and a subscription to all later ones; nil if only the newest value counts.
    package func subscribeToEach(
        onOverflow policy: EventOverflowPolicy = .fail
    ) -> (first: EncodedValue?, rest: EventSubscription<EncodedValue>)? {
        guard case .every(let buffer) = reading, let each else { return nil }
        // In this order, a value that arrives in between is in both, and readers skip it by its count.
        let rest = each.subscribe(bufferLimit: buffer, onOverflow: policy)
        let state = relay.currentValue
        return (state.update.map { EncodedValue(text: $0, count: state.count) }, rest)
    }

    /// Returns the value for `state`, or a newer one, with its count; nil if it is not available.
    ///
    /// A value that does not decode is reported. A whole value is requested from the server if changes do not fit the current
    /// value, or if that value does not decode.
    func value<Value: Decodable>(
        _ type: Value.Type, of state: State, incremental: (any IncrementalState<Value>)?
    ) -> (value: Result<Value, TrebuchetError>, count: UInt64)? {
        if let text = state.update { return version(type, text, count: state.count).map { ($0, state.count) } }
        do {
            return try incremental?.newest(userInfo: userInfo).map { (.success($0.value), $0.count) }
        } catch {
            restart()
            return nil
        }
    }

    /// Returns the newest value if it comes after the first `seen` values; nil also if it is not available. Changes nothing.
    func newest<Value: Decodable>(
        _ type: Value.Type, after seen: UInt64, incremental: (any IncrementalState<Value>)?
    ) -> (value: Value, count: UInt64)? {
        let state = relay.currentValue
        guard state.count > seen else { return nil }
        if let text = state.update { return (try? decoded(type, text)).map { ($0, state.count) } }
        let found = try? incremental?.newest(userInfo: userInfo)
        return found.flatMap { $0.count > seen ? $0 : nil }
    }

    /// Returns a version of a state; nil for a part that does not exist.
    func version<Value: Decodable>(
        _ type: Value.Type, _ text: [UInt8], count: UInt64
    ) -> Result<Value, TrebuchetError>? {
        do {
            guard let value = try decoded(type, text) else { return nil }
            undecodable.didDecode(version: count)
            return .success(value)
        } catch {
            return .failure(undecodable.recordVersion(error, as: type, version: count))
        }
    }

    /// Whether the stream ends with the first event that does not decode.
    var endsAtUndecodable: Bool { if case .events(_, _, .end) = reading { true } else { false } }

    /// Returns an event. The readers' position moves past it, unless it does not decode and ends the stream.
    func event<Value: Decodable>(_ type: Value.Type, _ taken: EncodedValue) -> Result<Value, TrebuchetError> {
        do {
            let value = try taken.text.withUnsafeBytes { try ValueCoder(userInfo: userInfo).decode(type, from: $0) }
            position?.didRead(taken.bookmark)
            return .success(value)
        } catch {
            let failure = undecodable.recordEvent(error, as: type, event: taken.bookmark)
            if endsAtUndecodable { relay.fail(failure) } else { position?.didRead(taken.bookmark) }
            return .failure(failure)
        }
    }

    private func decoded<Value: Decodable>(_ type: Value.Type, _ text: [UInt8]) throws -> Value? {
        // The server sends null for a part that does not exist, and this type has no value for it.
        if filter?.path != nil, !(type is any ExpressibleByNilLiteral.Type), text.elementsEqual("null".utf8) {
            return nil
        }
        return try text.withUnsafeBytes { try ValueCoder(userInfo: userInfo).decode(type, from: $0) }
    }
}

extension StateRelay<EncodedStream.State> {
    /// Stores a value; nil if it is stored elsewhere.
    package func setValue(_ value: [UInt8]?) {
        update { state in
            state.update = value
            state.count += 1
        }
    }

    package func finish(_ outcome: StreamOutcome) {
        update { if $0.outcome == nil { $0.outcome = outcome } }
        finish()
    }

    func fail(_ error: TrebuchetError) { finish(.failed(error)) }
}

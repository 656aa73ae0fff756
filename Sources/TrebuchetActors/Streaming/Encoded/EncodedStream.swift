internal import Relays
internal import TrebuchetWire

/// How a stream is read.
package enum StreamReading {
    /// The newest value.
    case latest
    /// Each value, from the newest on; so many may be unread.
    case every(buffer: Int)
    /// Each event, behind a place or from now on; so many may be unread.
    case events(buffer: Int, since: EventBookmark? = nil, onUndecodable: UndecodableEvents = .skip)
}

/// How a stream of states ended.
public enum StreamOutcome: Sendable, Equatable {
    /// In order: the server or this side ended it.
    case completed
    /// Otherwise: the connection was closed, the actor went, or the server reported an error.
    case failed(TrebuchetError)
}

/// A state that is observed by its values in JSON: at a server, or in this process through a filter. When the last reader
/// lets go of it, whoever sends the values is told.
package final class EncodedStream: Sendable {
    /// What the stream has come to.
    package struct State: Sendable {
        /// The newest value in JSON; nil as well while `kept` has what it is made of.
        package var update: [UInt8]?
        /// Grows with every value, whatever epoch it is of.
        package var count: UInt64 = 0
        package var outcome: StreamOutcome?
    }

    /// One value, in JSON.
    package struct Taken: Sendable {
        package let text: [UInt8]
        package let count: UInt64
        /// Behind an event; nil of a state.
        let bookmark: EventBookmark?

        package init(text: [UInt8], count: UInt64, bookmark: EventBookmark? = nil) {
            self.text = text
            self.count = count
            self.bookmark = bookmark
        }
    }

    package let relay: StateRelay<State>
    /// Set when each value counts; of events nothing else is kept.
    package let each: EventRelay<Taken>?
    /// The reader of events, there before the first of them.
    package let events: EventSubscription<Taken>?
    /// Of events: how far their readers have come.
    package let place: EventPlace?
    private let reading: StreamReading
    /// Of a state that knows its changes: the value, to which they are applied.
    package let kept: (any KeptState)?
    /// What could not be decoded of it.
    let undecodable: UndecodableValues
    private let filter: StreamFilter?
    private let userInfo: [CodingUserInfoKey: any Sendable]
    private let restart: @Sendable () -> Void
    private let release: @Sendable () -> Void

    /// - Parameters:
    ///   - target: what it is a stream of.
    ///   - report: receives what readers could not decode.
    ///   - restart: asks for a whole value, because changes do not fit the one that is kept.
    ///   - release: called when nobody reads any more.
    package init(
        of target: StreamTarget, relay: StateRelay<State> = StateRelay(State()), reading: StreamReading = .latest,
        kept: (any KeptState)? = nil, userInfo: [CodingUserInfoKey: any Sendable],
        report: @escaping @Sendable (UndecodableValue) -> Void = UndecodableValue.warn,
        restart: @escaping @Sendable () -> Void = {},
        release: @escaping @Sendable () -> Void
    ) {
        self.relay = relay
        self.reading = reading
        switch reading {
        case .latest: (each, events, place) = (nil, nil, nil)
        case .every: (each, events, place) = (EventRelay(), nil, nil)
        case .events(let buffer, let since, _):
            let relay = EventRelay<Taken>()
            (each, events) = (relay, relay.subscribe(bufferLimit: buffer, onOverflow: .fail))
            place = EventPlace(since)
        }
        self.kept = kept
        undecodable = UndecodableValues(of: target, report)
        filter = target.filter
        self.userInfo = userInfo
        self.restart = restart
        self.release = release
    }

    deinit { release() }

    /// The newest value, and all that come after it; nil when the newest alone counts.
    package func subscribeToEach(
        onOverflow policy: EventOverflowPolicy = .fail
    ) -> (first: Taken?, rest: EventSubscription<Taken>)? {
        guard case .every(let buffer) = reading, let each else { return nil }
        // In this order: what comes in between is in both, and counted.
        let rest = each.subscribe(bufferLimit: buffer, onOverflow: policy)
        let state = relay.currentValue
        return (state.update.map { Taken(text: $0, count: state.count) }, rest)
    }

    /// The value that `state` tells of, or a newer one, with its count; nil when it is not to be had.
    ///
    /// A value that does not decode is reported. Where changes do not fit the value that is kept, or nothing can be applied to it as it does
    /// not decode, the server is asked for a whole one.
    func value<Value: Decodable>(
        _ type: Value.Type, of state: State, kept: (any KeptState<Value>)?
    ) -> (value: Result<Value, TrebuchetError>, count: UInt64)? {
        if let text = state.update { return version(type, text, count: state.count).map { ($0, state.count) } }
        do {
            return try kept?.newest(userInfo: userInfo).map { (.success($0.value), $0.count) }
        } catch {
            restart()
            return nil
        }
    }

    /// The newest value, if it is one after the first `seen`; nil as well when it is not to be had. Changes nothing.
    func newest<Value: Decodable>(
        _ type: Value.Type, after seen: UInt64, kept: (any KeptState<Value>)?
    ) -> (value: Value, count: UInt64)? {
        let state = relay.currentValue
        guard state.count > seen else { return nil }
        if let text = state.update { return (try? decoded(type, text)).map { ($0, state.count) } }
        let found = try? kept?.newest(userInfo: userInfo)
        return found.flatMap { $0.count > seen ? $0 : nil }
    }

    /// A version of a state; nil for a part that does not exist.
    func version<Value: Decodable>(
        _ type: Value.Type, _ text: [UInt8], count: UInt64
    ) -> Result<Value, TrebuchetError>? {
        do {
            guard let value = try decoded(type, text) else { return nil }
            undecodable.didDecode(version: count)
            return .success(value)
        } catch {
            return .failure(undecodable.note(error, as: type, version: count))
        }
    }

    /// Whether the first event that does not decode is the last.
    var endsAtUndecodable: Bool { if case .events(_, _, .end) = reading { true } else { false } }

    /// An event. The place of its readers moves behind it, unless it does not decode and ends the stream.
    func event<Value: Decodable>(_ type: Value.Type, _ taken: Taken) -> Result<Value, TrebuchetError> {
        do {
            let value = try taken.text.withUnsafeBytes { try ValueCoder(userInfo: userInfo).decode(type, from: $0) }
            place?.didRead(taken.bookmark)
            return .success(value)
        } catch {
            let failure = undecodable.note(error, as: type, event: taken.bookmark)
            if endsAtUndecodable { relay.fail(failure) } else { place?.didRead(taken.bookmark) }
            return .failure(failure)
        }
    }

    private func decoded<Value: Decodable>(_ type: Value.Type, _ text: [UInt8]) throws -> Value? {
        // So the server says that a part does not exist, and this reader has no word for that.
        if filter?.path != nil, !(type is any ExpressibleByNilLiteral.Type), text.elementsEqual("null".utf8) {
            return nil
        }
        return try text.withUnsafeBytes { try ValueCoder(userInfo: userInfo).decode(type, from: $0) }
    }
}

extension StateRelay<EncodedStream.State> {
    /// Takes a value; nil for one that is kept elsewhere.
    package func take(_ value: [UInt8]?) {
        update { state in
            state.update = value
            state.count += 1
        }
    }

    package func end(_ outcome: StreamOutcome) {
        update { if $0.outcome == nil { $0.outcome = outcome } }
        finish()
    }

    func fail(_ error: TrebuchetError) { end(.failed(error)) }
}

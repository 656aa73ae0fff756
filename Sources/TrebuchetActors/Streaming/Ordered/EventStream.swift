internal import Relays

/// The events of an actor, each of them and in order.
///
/// All iterators of one stream share its events: each event goes to one of them. For two readers, observe twice. It throws
/// a `TrebuchetError`: `overflow` when events were missed, because this reader or its connection fell behind by more than
/// the buffer holds, or because the server was started anew; others when the actor has gone or the stream was refused.
public struct EventStream<Event: Codable & Sendable>: AsyncSequence, Sendable {
    public typealias Element = Event
    public typealias Failure = TrebuchetError

    enum Source: Sendable {
        case local(EventSubscription<Event>)
        case remote(RemoteStream, EventSubscription<RemoteStream.Taken>)
        case failed(TrebuchetError)
    }

    private let source: Source

    init(local: EventSubscription<Event>) { source = .local(local) }
    init(failed error: TrebuchetError) { source = .failed(error) }

    init(remote: RemoteStream) {
        source =
            if let events = remote.events {
                .remote(remote, events)
            } else {
                .failed(TrebuchetError(.internal, "the stream keeps no events"))
            }
    }

    public func makeAsyncIterator() -> Iterator { Iterator(source) }

    public struct Iterator: AsyncIteratorProtocol {
        private let source: Source
        private var local: EventSubscription<Event>.Iterator?
        private var remote: EventSubscription<RemoteStream.Taken>.Iterator?

        init(_ source: Source) {
            self.source = source
            switch source {
            case .local(let events): local = events.makeAsyncIterator()
            case .remote(_, let events): remote = events.makeAsyncIterator()
            case .failed: break
            }
        }

        /// The next event; nil when the stream ended in order, or the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(TrebuchetError) -> Event? {
            switch source {
            case .failed(let error): throw error
            case .local: return try await nextLocal(isolation: actor)
            case .remote(let stream, _): return try await nextRemote(stream, isolation: actor)
            }
        }

        private mutating func nextLocal(isolation actor: isolated (any Actor)?) async throws(TrebuchetError) -> Event? {
            do throws(EventOverflow) {
                if let event = try await local?.next(isolation: actor) { return event }
            } catch {
                throw TrebuchetError(error)
            }
            if Task.isCancelled { return nil }
            throw TrebuchetError(.actorNotFound, "the actor is gone")
        }

        private mutating func nextRemote(
            _ stream: RemoteStream, isolation actor: isolated (any Actor)?
        ) async throws(TrebuchetError) -> Event? {
            do throws(EventOverflow) {
                if let taken = try await remote?.next(isolation: actor),
                    let event = stream.decode(Event.self, taken.text)
                {
                    return event
                }
            } catch {
                throw TrebuchetError(error)
            }
            if case .failed(let error) = stream.relay.currentValue.outcome { throw error }
            return nil
        }
    }
}

extension TrebuchetError {
    init(_ overflow: EventOverflow) {
        self.init(.overflow, "the reader fell more than \(overflow.bufferLimit) behind")
    }
}

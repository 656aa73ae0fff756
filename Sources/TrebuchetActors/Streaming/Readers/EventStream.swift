internal import Relays

/// The events of an actor, each of them and in order.
///
/// All iterators of one stream share its events: each event goes to one of them. For two readers, observe twice. It throws
/// a `TrebuchetError`: `overflow` when events were missed, because this reader or its connection fell behind by more than
/// the buffer holds, or because the server was started anew; others when the actor has gone or the stream was refused.
/// An event that does not decode is left out and reported (``UndecodableValue``), unless the stream was begun with ``UndecodableEvents/end``.
public struct EventStream<Event: Codable & Sendable>: AsyncSequence, Sendable {
    public typealias Element = Event
    public typealias Failure = TrebuchetError

    private let origin: StreamOrigin<Event>

    init(_ origin: StreamOrigin<Event>) { self.origin = origin }

    /// The place behind the event that an iterator has given or left out last, or where the stream began, to go on from with
    /// `observeMoves(since:)`, in another process too.
    ///
    /// Nil until that is known, and of an actor in this process that is observed without `since:`.
    public var bookmark: EventBookmark? {
        guard case .encoded(let stream, _) = origin else { return nil }
        return stream.place?.bookmark
    }

    public func makeAsyncIterator() -> Iterator { Iterator(origin) }

    public struct Iterator: AsyncIteratorProtocol {
        private let origin: StreamOrigin<Event>
        private var reader: StreamReader<Event>

        init(_ origin: StreamOrigin<Event>) {
            self.origin = origin
            reader = StreamReader(origin)
        }

        /// The next event; nil when the stream ended in order, or the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(TrebuchetError) -> Event? {
            var undecodable: TrebuchetError?
            do throws(EventOverflow) {
                while undecodable == nil, let event = try await reader.next(isolation: actor) {
                    switch event {
                    case .success(let event): return event
                    case .failure(let error): if origin.endsAtUndecodable { undecodable = error }
                    }
                }
            } catch {
                throw TrebuchetError(error)
            }
            if let undecodable { throw undecodable }
            if case .failed(let error) = origin.outcome { throw error }
            return nil
        }
    }
}

extension TrebuchetError {
    init(_ overflow: EventOverflow) {
        self.init(.overflow, "the reader fell more than \(overflow.bufferLimit) behind")
    }
}

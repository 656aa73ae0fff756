internal import Relays

/// The events of an actor, all of them and in order.
///
/// All iterators of one stream share its events: each event goes to one of them. For two readers, observe twice. The stream
/// throws a `TrebuchetError`. The code is `overflow` if events were missed: because this reader or its connection fell behind
/// by more than the buffer, or because the server restarted. Other codes mean that the actor was released or that the stream was
/// rejected. An event that does not decode is skipped and reported (``UndecodableValue``), unless the stream was started with
/// ``UndecodableEvents/end``.
public struct EventStream<Event: Codable & Sendable>: AsyncSequence, Sendable {
    public typealias Element = Event
    public typealias Failure = TrebuchetError

    private let origin: StreamOrigin<Event>

    init(_ origin: StreamOrigin<Event>) { self.origin = origin }

    /// The position after the event that an iterator has returned or skipped last, or where the stream started. Use it to
    /// resume with `observeMoves(since:)`, also in another process.
    ///
    /// Nil until the position is known, and for an actor in this process that is observed without `since:`.
    public var bookmark: EventBookmark? {
        guard case .encoded(let stream, _) = origin else { return nil }
        return stream.position?.bookmark
    }

    public func makeAsyncIterator() -> Iterator { Iterator(origin) }

    /// Reads the events of a stream, which it shares with the other iterators.
    public struct Iterator: AsyncIteratorProtocol {
        private let origin: StreamOrigin<Event>
        private var reader: StreamReader<Event>

        init(_ origin: StreamOrigin<Event>) {
            self.origin = origin
            reader = StreamReader(origin)
        }

        /// Returns the next event; nil after the stream has ended regularly or the task was cancelled.
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
        self.init(.overflow, "the reader is more than \(overflow.bufferLimit) events behind")
    }
}

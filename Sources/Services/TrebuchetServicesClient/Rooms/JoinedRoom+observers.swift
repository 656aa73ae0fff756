internal import Platform
internal import Synchronization
internal import TrebuchetClient

/// Observation of the room's streams, and delivery to the feeds.
extension JoinedRoom {
    // MARK: Observation

    /// Starts and stops the stream readers so that they match what the feeds need.
    func adjustReaders(_ room: RemoteRoom) {
        let needless = contents.withLock { contents -> [Task<Void, Never>?] in
            guard contents.plan.isJoined else { return [] }
            let joins = contents.joins
            var needless: [Task<Void, Never>?] = []
            if !contents.wantsRoster {
                needless.append(contents.rosterReader.take())
                contents.roster = nil
            } else if contents.rosterReader == nil {
                contents.rosterReader = Task { [weak self] in
                    let rosters = await room.observeRoster()
                    for await roster in rosters { self?.receiveRoster(roster) }
                    self?.readerEnded(rosters.outcome, begunAfter: joins)
                }
            }
            if !contents.wantsEvents {
                needless.append(contents.eventReader.take())
                contents.cursor = EventCursor()
                contents.hasEvents = false
            } else if contents.eventReader == nil {
                contents.eventReader = Task { [weak self] in
                    var outcome: StreamOutcome?
                    do throws(TrebuchetError) {
                        let events = await room.observeEvents()
                        // Calls keep their order: this response arrives after the stream has started.
                        _ = await self?.catchUp(room)
                        // A refused stream has ended before that response.
                        let task = Task {
                            try await Task.sleep(for: .seconds(1))
                            self?.change { $0.plan.recordActivity() }
                        }
                        defer { task.cancel() }
                        for try await event in events { await self?.receiveEvent(event, room) }
                    } catch {
                        outcome = .failed(error)
                    }
                    self?.readerEnded(outcome, begunAfter: joins)
                }
            }
            return needless
        }
        for reader in needless { reader?.cancel() }
    }

    func stopReaders() {
        let readers = contents.withLock { [$0.rosterReader.take(), $0.eventReader.take()] }
        for reader in readers { reader?.cancel() }
    }

    /// The room has been deactivated, or its streams may not be observed.
    ///
    /// - Parameter joins: the number of joins when the reader started.
    private func readerEnded(_ outcome: StreamOutcome?, begunAfter joins: Int) {
        guard !Task.isCancelled else { return }
        stopReaders()
        guard case .failed(let error)? = outcome else { return rejoin(after: RoomError.roomClosed) }
        // Events arrived faster than they were read. The room still stores them, or reports how many it does not.
        if error.code == .overflow { return wake() }
        // A stream from an earlier connection was resumed over this one before the room was joined; it must be restarted.
        let (isJoined, isOld) = contents.withLock { ($0.plan.isJoined, $0.joins != joins) }
        guard isJoined else { return }
        if isOld { return wake() }
        // The room itself has refused a connection that has not joined.
        guard error.code == .application else { return rejoin(after: error) }
        if let delay = change({ $0.plan.moved(error) }) { retry(after: delay) }
    }

    /// The random factor spreads the reconnects of many clients.
    private func rejoin(after error: any Error) {
        retry(after: change { $0.plan.lost(error) } * Double.random(in: 0.5...1))
    }

    private func receiveRoster(_ roster: Roster) {
        guard !Task.isCancelled else { return }
        change { contents in
            contents.roster = roster
            contents.rosterCount += 1
            contents.plan.recordActivity()
        }
    }

    private func receiveEvent(_ event: RoomEvent, _ room: RemoteRoom) async {
        // The stream may start anywhere in the sequence of events; the events in between are requested.
        let isNext = contents.withLock { $0.cursor.continues(with: event) }
        // Without a response the connection is lost: the restarted reader requests the events again.
        guard isNext ? true : await catchUp(room) else { return }
        deliverEvents([event])
        change { $0.plan.recordActivity() }
    }

    /// Requests the events since the last seen one, or at first the position to start from. Returns false when there is no
    /// response.
    private func catchUp(_ room: RemoteRoom) async -> Bool {
        let last = contents.withLock { $0.cursor.last }
        do {
            let events = try await room.history(topic: nil, after: last, limit: last == nil ? 1 : nil)
            if last == nil { resetEvents(after: events.last) } else { deliverEvents(events) }
            change { $0.hasEvents = true }
            return true
        } catch RoomError.rateLimited(let milliseconds) {
            try? await Task.sleep(for: .milliseconds(milliseconds))
            return Task.isCancelled ? false : await catchUp(room)
        } catch {
            return false
        }
    }

    private func resetEvents(after event: RoomEvent?) {
        change { $0.cursor.reset(after: event?.number ?? 0, in: $0.plan.ticket?.events.epoch) }
    }

    private func deliverEvents(_ events: [RoomEvent]) {
        guard !Task.isCancelled else { return }
        change { contents in
            let (new, missed) = contents.cursor.advance(over: events)
            contents.plan.answered()
            let inputs = new.map { RoomInput.event($0) }
            contents.addArrived(missed > 0 ? [.missed(missed)] + inputs : inputs)
        }
    }

    // MARK: Delivery

    /// The state that a feed has received last.
    private struct FeedSnapshot {
        var status: RoomStatus?
        var rosterCount = 0
    }

    /// Delivers changes to the feeds in order. Only this task does.
    func deliverChanges() async {
        var shown: [Int: FeedSnapshot] = [:]
        for await _ in changes.stream {
            let update = contents.withLock { contents in
                defer { contents.arrived = [] }
                return contents
            }
            shown = shown.filter { update.feeds[$0.key] != nil }
            for (number, feed) in update.feeds {
                var last = shown[number] ?? FeedSnapshot()
                // Before the status: a connected value must have the members.
                if let roster = update.roster, last.rosterCount != update.rosterCount {
                    feed.applyRoster(roster, without: update.ownMemberships.ids)
                    last.rosterCount = update.rosterCount
                }
                if last.status != update.status {
                    feed.applyStatus(update.status)
                    last.status = update.status
                }
                for arrival in update.arrived { deliver(arrival, to: feed, without: update.ownMemberships.ids) }
                shown[number] = last
            }
        }
    }

    /// Delivers an empty roster as the last value of a room that was left while values still show it.
    func deliverEmptyRoster() {
        let (feeds, status) = contents.withLock { (Array($0.feeds.values), $0.status) }
        for feed in feeds {
            feed.applyRoster(Roster(), without: [])
            feed.applyStatus(status)
        }
    }

    private func deliver(_ arrival: RoomInput, to feed: any RoomObserver, without membershipIDs: Set<String>) {
        switch arrival {
        case .event(let event)
        where feed.topic.map { $0.isSameBytes(as: event.topic) } ?? false && !membershipIDs.contains(event.peer):
            feed.receive(event)
        case .event: break
        case .missed(let count): feed.missed(count)
        case .restarted: feed.restarted()
        }
    }
}

internal import Synchronization
internal import Trebuchet

/// Hearing of the room, and showing it.
extension JoinedRoom {
    // MARK: Hearing

    /// Observes what the room's values need, and no more.
    func adjustReaders(_ room: Room) {
        let needless = contents.withLock { contents -> [Task<Void, Never>?] in
            guard contents.plan.isJoined else { return [] }
            var needless: [Task<Void, Never>?] = []
            if !contents.wantsRoster {
                needless.append(contents.rosterReader.take())
                contents.roster = nil
            } else if contents.rosterReader == nil {
                contents.rosterReader = Task { [weak self] in
                    let rosters = await room.observeRoster()
                    for await roster in rosters { self?.heard(roster) }
                    self?.readerEnded(rosters.outcome)
                }
            }
            if !contents.wantsEvents {
                needless.append(contents.eventReader.take())
                contents.cursor = EventCursor()
                contents.hasEvents = false
            } else if contents.eventReader == nil {
                contents.eventReader = Task { [weak self] in
                    let windows = await room.observeEvents()
                    for await window in windows { await self?.heard(window, room) }
                    self?.readerEnded(windows.outcome)
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

    /// The room has gone, or may not be observed.
    private func readerEnded(_ outcome: StreamOutcome?) {
        guard !Task.isCancelled else { return }
        stopReaders()
        let error: any Error = if case .failed(let error)? = outcome { error } else { RoomError.roomClosed }
        retry(after: change { $0.plan.lost(error) })
    }

    private func heard(_ roster: Roster) {
        guard !Task.isCancelled else { return }
        change { contents in
            contents.roster = roster
            contents.rosterCount += 1
        }
    }

    private func heard(_ window: EventWindow, _ room: Room) async {
        let progress = contents.withLock { $0.cursor.advance(to: window) }
        var events = progress.events
        var lost = 0
        if let missed = progress.missed {
            // The room remembers more than it streams. Before the others: these are older.
            let known = await remembered(after: missed.lowerBound - 1, room).filter { missed.contains($0.number) }
            events.insert(contentsOf: known, at: 0)
            lost = missed.count - known.count
        }
        guard !Task.isCancelled else { return }
        let (arrived, missed) = (events, lost)
        change { contents in
            contents.hasEvents = true
            if missed > 0 { contents.arrived.append(.missed(missed)) }
            contents.arrived += arrived.map { .event($0) }
        }
    }

    /// What the room remembers. Only members are told: after a reconnect the stream may go on before the room is joined.
    private func remembered(after number: Int, _ room: Room) async -> [RoomEvent] {
        for await _ in changes.stream where contents.withLock({ $0.plan.isJoined }) {
            do {
                return try await room.history(topic: nil, after: number, limit: nil)
            } catch let error as RoomError where error != .notJoined {
                return []
            } catch {
                // The connection was another one, or has gone: the next change tells.
            }
        }
        return []
    }

    // MARK: Showing

    /// What a feed was last shown.
    private struct Shown {
        var status: RoomStatus?
        var rosterCount = 0
    }

    /// Shows what is new, in order: the only task that does.
    func showChanges() async {
        var shown: [Int: Shown] = [:]
        for await _ in changes.stream {
            let news = contents.withLock { contents in
                defer { contents.arrived = [] }
                return contents
            }
            shown = shown.filter { news.feeds[$0.key] != nil }
            for (number, feed) in news.feeds {
                var last = shown[number] ?? Shown()
                // Before the status: who is connected knows who is there.
                if let roster = news.roster, last.rosterCount != news.rosterCount {
                    feed.show(roster, without: news.sessions)
                    last.rosterCount = news.rosterCount
                }
                if last.status != news.status {
                    feed.show(news.status)
                    last.status = news.status
                }
                for arrival in news.arrived { show(arrival, in: feed, without: news.sessions) }
                shown[number] = last
            }
        }
    }

    private func show(_ arrival: Arrival, in feed: any RoomFeed, without sessions: Set<String>) {
        switch arrival {
        case .event(let event) where event.topic == feed.topic && !sessions.contains(event.peer): feed.receive(event)
        case .event: break
        case .missed(let count): feed.missed(count)
        }
    }
}

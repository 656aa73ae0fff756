import Testing

@testable import TrebuchetServices

@Suite struct EventWindowTests {
    private func window(_ count: Int, epoch: String = "e", maximum: Int = 4) -> EventWindow {
        var window = EventWindow(maximumEvents: maximum, maximumBytes: 100, epoch: epoch)
        for number in 0..<count { window.append(topic: "t", peer: "p", payload: .integer(Int64(number)), bytes: 1) }
        return window
    }

    @Test("a window keeps the newest events, by number and by bytes, and always the last")
    func bounds() {
        #expect(window(6).events.map(\.number) == [3, 4, 5, 6])
        var window = window(2)
        window.append(topic: "t", peer: "p", payload: .null, bytes: 99)
        #expect(window.events.map(\.number) == [2, 3])
        window.append(topic: "t", peer: "p", payload: .null, bytes: 1_000)
        #expect(window.events.map(\.number) == [4])
        window.append(topic: "t", peer: "p", payload: .null, bytes: 1)
        #expect(window.events.map(\.number) == [5])
    }

    @Test("a reader begins with what is published next, and gets each event once, whichever states it sees")
    func once() {
        var cursor = EventCursor()
        #expect(cursor.advance(to: window(2)) == .init())
        #expect(cursor.advance(to: window(3)).events.map(\.number) == [3])
        #expect(cursor.advance(to: window(3)) == .init())
        #expect(cursor.advance(to: window(6)).events.map(\.number) == [4, 5, 6])
    }

    @Test("a reader that was told where to begin begins there, however late its first state is; told again it goes on")
    func toldWhere() {
        var cursor = EventCursor()
        cursor.begin(at: window(2).position)
        #expect(cursor.advance(to: window(4)).events.map(\.number) == [3, 4])
        cursor.begin(at: window(2).position)
        #expect(cursor.advance(to: window(4)) == .init())
        var late = EventCursor()
        late.begin(at: window(0).position)
        #expect(late.advance(to: window(7)).missed == 1..<4)
    }

    @Test("a reader that was too slow knows which events it has missed")
    func gap() {
        var cursor = EventCursor()
        _ = cursor.advance(to: window(0))
        let progress = cursor.advance(to: window(7))
        #expect(progress.missed == 1..<4)
        #expect(progress.events.map(\.number) == [4, 5, 6, 7])
    }

    @Test("a room that was made anew counts anew: all of its events are news")
    func epoch() {
        var cursor = EventCursor()
        _ = cursor.advance(to: window(5))
        #expect(cursor.advance(to: window(2, epoch: "f")).events.map(\.number) == [1, 2])
        #expect(cursor.advance(to: window(3, epoch: "f")).events.map(\.number) == [3])
    }
}

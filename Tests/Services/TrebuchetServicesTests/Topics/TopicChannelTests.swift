import Foundation
import SharedState
import Testing

@testable import TrebuchetServices

@Suite struct TopicChannelTests {
    private func event(_ number: Int) -> TopicEvent<Emoji> {
        TopicEvent(peerId: "p", data: Emoji(name: "\(number)"))
    }

    @Test("a new channel is empty and not connected, and keeps 50 events")
    func creation() {
        let channel = TopicChannel<Emoji>()
        #expect(channel.events == [] && channel.latestEvent == nil && !channel.hasEvent)
        #expect(!channel.isConnected && !channel.isPublishing && !channel.isError)
        #expect(channel.maxEvents == 50)
    }

    @Test("the latest event is the last; the oldest are dropped when there are too many; clearing removes all")
    func buffering() {
        var channel = TopicChannel<Emoji>()
        channel.maxEvents = 3
        for number in 1...5 { channel.addEvent(event(number)) }
        #expect(channel.events.map(\.data.name) == ["3", "4", "5"])
        #expect(channel.latestEvent?.data.name == "5")
        channel.maxEvents = 1
        #expect(channel.events.map(\.data.name) == ["5"])
        channel.clearEvents()
        #expect(!channel.hasEvent)
    }

    @Test("a channel is created with events and with the number to keep")
    func parts() {
        let channel = TopicChannel<Emoji>(events: (1...5).map(event), isConnected: true, maxEvents: 2)
        #expect(channel.events.map(\.data.name) == ["4", "5"] && channel.maxEvents == 2 && channel.isConnected)
        #expect(TopicChannel<Emoji>(maxEvents: 3).maxEvents == 3)
    }

    @Test("the outcome of a publish is one value") @MainActor
    func results() async {
        #expect(TopicPublishResult.success.success && TopicPublishResult.success.error == nil)
        let failure = TopicPublishResult.failure(RoomError.notJoined)
        #expect(!failure.success && failure.error as? RoomError == .notJoined)
        var results: [TopicPublishResult] = []
        let channel = Shared(value: TopicChannel<Emoji>())
        let call = channel.publish(Emoji(name: "x"), onSettled: { results.append(TopicPublishResult($0)) })
        await #expect(throws: RoomError.noBackend) { try await call.value }
        #expect(results.map(\.success) == [false] && results.first?.error as? RoomError == .noBackend)
    }

    @Test("a presence is any type that conforms to PresenceData")
    func presenceData() {
        struct Cursor: PresenceData { var x = 0 }
        func shown<Presence: PresenceData>(_ presence: RoomPresence<Presence>) -> Presence { presence.user }
        #expect(shown(RoomPresence(user: Cursor(x: 3))) == Cursor(x: 3))
    }

    @Test("events are equal when all their parts are, channels when their visible parts are")
    func equality() {
        let one = event(1)
        #expect(one == one)
        #expect(one != TopicEvent(peerId: "p", data: one.data, timestamp: one.timestamp), "ids differ")
        var channel = TopicChannel<Emoji>()
        let other = TopicChannel<Emoji>()
        #expect(channel == other)
        channel.publishStatus = .pending
        #expect(channel != other && channel.isPublishing)
    }

    @Test("keys of topics are equal by room type and topic, those of values by room and topic")
    func keys() {
        #expect(TopicKey<Emoji>(roomType: "chat", topic: "emoji") == Schema.Topics.emoji)
        #expect(TopicKey<Emoji>(roomType: "chat", topic: "other") != Schema.Topics.emoji)
        typealias Key = TopicChannelKey<Emoji>
        let key: Key.Default = .trebuchetTopic(Schema.Topics.emoji, roomId: "1")
        let same: Key.Default = .instantTopic(roomType: "chat", topic: "emoji", roomId: "1")
        let otherTopic: Key.Default = .instantTopic(roomType: "chat", topic: "x", roomId: "1")
        let otherRoom: Key.Default = .instantTopic(Schema.Topics.emoji, roomId: "2")
        #expect(key.id == same.id)
        #expect(key.id != otherTopic.id && key.id != otherRoom.id)
    }

    @Test("a channel without a server fails each publish, with every callback") @MainActor
    func noBackend() async {
        let channel = Shared(value: TopicChannel<Emoji>())
        var calls: [String] = []
        let call = channel.publish(Emoji(name: "x")) { payload in
            calls.append("attempt \(payload.name)")
        } onSuccess: {
            calls.append("success")
        } onError: { error in
            calls.append("error")
        } onSettled: { result in
            calls.append("settled")
        }
        #expect(calls == ["attempt x"] && channel.wrappedValue.isPublishing)
        await #expect(throws: RoomError.noBackend) { try await call.value }
        #expect(calls == ["attempt x", "error", "settled"])
        #expect(channel.wrappedValue.publishStatus == .error && channel.wrappedValue.isError)
        channel.reset()
        #expect(channel.wrappedValue == TopicChannel<Emoji>())
    }

    @Test("a channel for no events, or for a negative number, keeps none", arguments: [0, -1])
    func keepsNone(most: Int) {
        var channel = TopicChannel<Emoji>()
        channel.addEvent(event(1))
        channel.maxEvents = most
        #expect(channel.events == [])
        channel.addEvent(event(2))
        #expect(channel.events == [])
        channel.error = RoomError.notJoined
        #expect(channel.isError)
    }

    @Test("channels differ by each visible part")
    func differences() {
        let channel = TopicChannel<Emoji>()
        for change in [
            { $0.addEvent(TopicEvent(peerId: "p", data: Emoji(name: "x"))) }, { $0.maxEvents = 1 },
            { $0.isConnected = true },
            { $0.isLoading = true }, { $0.publishStatus = .success }, { $0.error = RoomError.notJoined },
        ] as [(inout TopicChannel<Emoji>) -> Void] {
            var other = channel
            change(&other)
            #expect(other != channel)
        }
    }
}

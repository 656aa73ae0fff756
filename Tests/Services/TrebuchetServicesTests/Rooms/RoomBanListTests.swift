import Testing

@testable import TrebuchetServices

@Suite struct RoomBanListTests {
    private func person(_ name: String) -> RoomBanList.Person { RoomBanList.Person.all(name, nil)[0] }

    @Test("a banned member cannot join that room until the time is over")
    func time() {
        var banList = RoomBanList()
        #expect(banList.isEmpty)
        banList.addBan(person("ada"), of: "chat-a", until: 10, at: 0)
        #expect(banList.isBanned(person("ada"), of: "chat-a", at: 9))
        #expect(!banList.isBanned(person("ada"), of: "chat-a", at: 10))
        #expect(
            !banList.isBanned(person("ada"), of: "chat-b", at: 0)
                && !banList.isBanned(person("bob"), of: "chat-a", at: 0)
        )
        #expect(RoomBanList.Person.all(nil, nil).isEmpty)
    }

    @Test("the number of bans is limited; those that end first are evicted first")
    func bounds() {
        var banList = RoomBanList()
        for number in 0..<RoomBanList.most {
            banList.addBan(person("\(number)"), of: "r", until: UInt64(100 + number), at: 0)
        }
        banList.addBan(person("new"), of: "r", until: 5, at: 0)
        #expect(banList.count <= RoomBanList.most && banList.isBanned(person("new"), of: "r", at: 0))
        #expect(!banList.isBanned(person("0"), of: "r", at: 0))
        #expect(banList.isBanned(person("\(RoomBanList.most - 1)"), of: "r", at: 0))
    }
}

import Testing

@testable import TrebuchetServices

@Suite struct RoomBanListTests {
    private func person(_ name: String) -> RoomBanList.Person { RoomBanList.Person.all(name, nil)[0] }

    @Test("a banned member cannot join that room until the time is over")
    func time() {
        var keptOut = RoomBanList()
        #expect(keptOut.isEmpty)
        keptOut.addBan(person("ada"), of: "chat-a", until: 10, at: 0)
        #expect(keptOut.isBanned(person("ada"), of: "chat-a", at: 9))
        #expect(!keptOut.isBanned(person("ada"), of: "chat-a", at: 10))
        #expect(
            !keptOut.isBanned(person("ada"), of: "chat-b", at: 0)
                && !keptOut.isBanned(person("bob"), of: "chat-a", at: 0)
        )
        #expect(RoomBanList.Person.all(nil, nil).isEmpty)
    }

    @Test("the number of bans is limited; those that end first are evicted first")
    func bounds() {
        var keptOut = RoomBanList()
        for number in 0..<RoomBanList.most {
            keptOut.addBan(person("\(number)"), of: "r", until: UInt64(100 + number), at: 0)
        }
        keptOut.addBan(person("new"), of: "r", until: 5, at: 0)
        #expect(keptOut.count <= RoomBanList.most && keptOut.isBanned(person("new"), of: "r", at: 0))
        #expect(!keptOut.isBanned(person("0"), of: "r", at: 0))
        #expect(keptOut.isBanned(person("\(RoomBanList.most - 1)"), of: "r", at: 0))
    }
}

import Foundation
import Testing

@testable import Networking
import Transports

@Suite("Groups of reactors")
struct ReactorGroupTests {
    @Test("a group has one reactor for each core that this process may use")
    func cores() throws {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed:") })
        let allowed = line.dropFirst("Cpus_allowed:".count).compactMap(\.hexDigitValue)
        #expect(ReactorGroup.coreCount == allowed.reduce(0) { $0 + $1.nonzeroBitCount })
        #expect(try ReactorGroup.servers().reactors.count == ReactorGroup.coreCount)
    }

    @Test("a group with an invalid count, zero or above 1024, is rejected with the number", arguments: [0, 1025, -1])
    func wrongCount(count: Int) {
        let error = #expect(throws: TransportError.self) { try ReactorGroup.servers(count: count) }
        #expect(error?.message.contains("\(count) reactors") == true)
    }
}

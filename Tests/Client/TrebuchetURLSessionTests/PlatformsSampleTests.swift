import Foundation
import TestSupport
import Testing
import TrebuchetClient
import TrebuchetURLSession

@Trebuchet
private distributed actor Auction {
    distributed func bid(_ cents: Int) -> Bool { cents > 0 }
}

/// The sample of Docs/Reference/Platforms.md, compiled verbatim. It is not run: Debian's libcurl has no WebSockets.
private func connect() async throws -> Auction {
    let client = TrebuchetClient(transport: URLSessionTransport("wss://example.com"))
    try await client.connect()
    let auction = try client.resolve(Auction.self, id: "auction")
    return auction
}

@Suite("The sample of Docs/Reference/Platforms.md")
struct PlatformsSampleTests {
    @Test("the sample occurs in this file, which is compiled, line by line")
    func compiles() throws {
        let file = URL(filePath: #filePath)
        let own = try Set(lines(of: file))
        let page = try lines(of: packageRoot.appending(path: "Docs/Reference/Platforms.md"))
        let begin = try #require(page.firstIndex(of: "```swift"))
        let sample = page[page.index(after: begin)...].prefix { $0 != "```" }.filter { !$0.isEmpty }
        #expect(sample.count >= 5)
        for line in sample { #expect(own.contains(line), "\(line)") }
    }

    private func lines(of file: URL) throws -> [String] {
        try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.trimmingCharacters(in: .whitespaces) }
    }
}

import Testing

@testable import TrebuchetServices

@Suite struct RefreshTokenFamilyTests {
    private static let second: Int64 = 1000

    /// Tokens are numbers; the successor of each is the next one. The times are relative to the previous step.
    @Test(
        "a token is refreshed once; the previous one may be repeated for 30 s while the last is unused; all else is reuse",
        arguments: [
            [(1, 0, RefreshTokenFamily.Use.renewed), (2, 60 * second, .renewed), (3, 0, .renewed)],
            [(1, 0, .renewed), (1, 29 * second, .repeated), (1, 0, .repeated), (2, 0, .renewed)],
            [(1, 0, .renewed), (1, 30 * second, .reused)],
            [(1, 0, .renewed), (2, 0, .renewed), (1, 0, .reused)],
            [(9, 0, .reused)],
            [(1, 0, .renewed), (3, 0, .reused)],
            // 100 s without a refresh.
            [(1, 99 * second, .renewed), (2, 99 * second, .renewed), (3, 100 * second, .expired)],
        ])
    func table(_ uses: [(token: UInt8, wait: Int64, outcome: RefreshTokenFamily.Use)]) {
        var family = RefreshTokenFamily(account: "ada", token: [1], at: 0, lifetime: 100 * Self.second)
        var now: Int64 = 0
        for (index, use) in uses.enumerated() {
            now += use.wait
            let outcome = family.rotate(
                [use.token], successor: [use.token + 1], at: now, lifetime: 100 * Self.second,
                repeatWindow: 30 * Self.second)
            #expect(outcome == use.outcome, "step \(index)")
        }
    }

    @Test(
        "a token can be parsed, its successor is determined by session and key, and cannot be computed without the key")
    func tokens() throws {
        let token = RefreshToken.random()
        #expect(RefreshToken(token.text) == token)
        let next = token.successor(key: [1])
        #expect(next == token.successor(key: [1]))
        #expect(next != token.successor(key: [2]))
        #expect(next.session == token.session)
        #expect(next.digest != token.digest)
        #expect(!token.text.contains(token.session), "the session's name is no part of the token")
        #expect(RefreshToken.random().session != token.session)
    }

    @Test(
        "an invalid token is refused",
        arguments: [
            "", ".", "a.b", "AAAA", String(repeating: "A", count: 10_000), "AAAAAAAAAAAAAAAAAAAAAA.", "..", "é.é",
        ])
    func malformed(_ text: String) {
        #expect(RefreshToken(text) == nil)
    }
}

@Suite("Random bytes")
struct RandomBytesTests {
    @Test("random bytes have every value")
    func values() {
        let bytes = [UInt8].random(count: 100_000)
        #expect(bytes.count == 100_000)
        #expect(Set(bytes).count == 256)
    }

    @Test("a session's name never looks like a command-line option")
    func names() {
        for _ in 0..<1_000 { #expect(!RefreshToken.random().session.hasPrefix("-")) }
    }
}

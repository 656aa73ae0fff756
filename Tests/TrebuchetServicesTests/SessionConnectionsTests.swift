import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient
@testable import TrebuchetServices

@Suite struct SessionConnectionsTests {
    private let connections = SessionConnections()

    private func connection(_ session: String) -> CallerConnection {
        CallerConnection(principal: Principal(id: "ada", claims: ["session": session]), remoteAddress: nil)
    }

    @Test("a session that ends takes their rights from its connections, and from no others")
    func end() {
        let (first, second, other) = (connection("a"), connection("a"), connection("b"))
        for connection in [first, second, other] { connections.add(connection) }
        connections.end("a", because: .expired)
        #expect(first.isRevoked && second.isRevoked && !other.isRevoked)
        #expect(first.principal?.id == "ada", "what was let in before goes on as who it was")
        #expect(connections.reason("a") == .expired && connections.reason("b") == .unknown)
        #expect(connections.count == 1)
    }

    @Test("a connection that was let in with a session that has ended meanwhile is not signed in")
    func late() {
        connections.end("a", because: .elsewhere)
        let late = connection("a")
        connections.add(late)
        #expect(late.isRevoked)
        let other = connection("b")
        connections.signIn(other, Principal(id: "ada"), session: "a")
        #expect(other.isRevoked)
        #expect(connections.count == 0)
    }

    @Test("a connection that was let in as who somebody was before is who he is by now")
    func changedMeanwhile() {
        let late = CallerConnection(
            principal: Principal(id: "ada", roles: ["user", "editor"], claims: ["session": "a"]), remoteAddress: nil)
        // Its roles were looked up; then one was taken; then the connection begins.
        connections.update("a", to: Principal(id: "ada", roles: ["user"], claims: ["session": "a"]))
        connections.add(late)
        #expect(late.principal?.roles == ["user"])
        connections.update("a", to: Principal(id: "ada", roles: ["user", "judge"], claims: ["session": "a"]))
        #expect(late.principal?.roles == ["user", "judge"])
        let other = connection("b")
        connections.add(other)
        #expect(other.principal?.roles == [])
    }

    @Test("a connection that closes is forgotten")
    func close() {
        let connection = connection("a")
        connections.add(connection)
        #expect(connections.count == 1)
        connection.didClose()
        #expect(connections.count == 0)
    }

    @Test("a connection whose rights were taken has them again when somebody signs in, or goes on as nobody")
    func again() {
        let connection = connection("a")
        connections.add(connection)
        connections.end("a", because: .elsewhere)
        connections.signIn(connection, Principal(id: "bob"), session: "b")
        #expect(!connection.isRevoked && connection.principal?.id == "bob")
        connections.end("b", because: .elsewhere)
        #expect(connection.isRevoked)
        connections.signOut(connection)
        #expect(!connection.isRevoked && connection.principal == nil)
    }

    @Test("of sessions that have ended the last ten thousand are known")
    func bounded() {
        for number in 0..<25_000 { connections.end("\(number)", because: .expired) }
        #expect(connections.reason("24999") == .expired && connections.reason("15000") == .expired)
        #expect(connections.reason("14999") == .unknown)
    }
}

import Testing

@testable import Trebuchet
@testable import TrebuchetServices

@Suite struct SessionConnectionsTests {
    private let connections = SessionConnections()

    private func connection(_ session: String) -> CallerConnection {
        CallerConnection(principal: Principal(id: "ada", claims: ["session": session]), remoteAddress: nil)
    }

    @Test("a session that ends signs out its connections, and no others")
    func end() {
        let (first, second, other) = (connection("a"), connection("a"), connection("b"))
        for connection in [first, second, other] { connections.add(connection) }
        connections.end("a")
        #expect(first.principal == nil && second.principal == nil)
        #expect(other.principal?.id == "ada")
        #expect(connections.count == 1)
    }

    @Test("a connection that was let in with a session that has ended meanwhile is not signed in")
    func late() {
        connections.end("a")
        let late = connection("a")
        connections.add(late)
        #expect(late.principal == nil)
        let other = connection("b")
        connections.signIn(other, Principal(id: "ada"), session: "a")
        #expect(other.principal == nil)
        #expect(connections.count == 0)
    }

    @Test("a connection that closes is forgotten")
    func close() {
        let connection = connection("a")
        connections.add(connection)
        #expect(connections.count == 1)
        connection.didClose()
        #expect(connections.count == 0)
    }
}

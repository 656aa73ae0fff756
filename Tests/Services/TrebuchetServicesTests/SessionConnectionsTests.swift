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

    @Test("an ended session revokes the authorization of its connections, and of no others")
    func end() {
        let (first, second, other) = (connection("a"), connection("a"), connection("b"))
        for connection in [first, second, other] { connections.addConnection(connection) }
        connections.endSession("a", because: .expired)
        #expect(first.isRevoked && second.isRevoked && !other.isRevoked)
        #expect(first.principal?.id == "ada", "calls accepted before keep their principal")
        #expect(connections.reason("a") == .expired && connections.reason("b") == .unknown)
        #expect(connections.count == 1)
    }

    @Test("a connection accepted with a session that has ended meanwhile is not signed in")
    func late() {
        connections.endSession("a", because: .elsewhere)
        let late = connection("a")
        connections.addConnection(late)
        #expect(late.isRevoked)
        let other = connection("b")
        connections.signIn(other, Principal(id: "ada"), session: "a")
        #expect(other.isRevoked)
        #expect(connections.count == 0)
    }

    @Test("a connection accepted with an outdated principal has the current one")
    func changedMeanwhile() {
        let late = CallerConnection(
            principal: Principal(id: "ada", roles: ["user", "editor"], claims: ["session": "a"]), remoteAddress: nil)
        // Its roles were looked up; then one was revoked; then the connection starts.
        connections.update("a", to: Principal(id: "ada", roles: ["user"], claims: ["session": "a"]))
        connections.addConnection(late)
        #expect(late.principal?.roles == ["user"])
        connections.update("a", to: Principal(id: "ada", roles: ["user", "judge"], claims: ["session": "a"]))
        #expect(late.principal?.roles == ["user", "judge"])
        let other = connection("b")
        connections.addConnection(other)
        #expect(other.principal?.roles == [])
    }

    @Test("the state of a session applies to tokens that are newer than all discarded states")
    func standing() {
        let connections = SessionConnections(limit: 2)
        let ada = Principal(id: "ada", roles: ["editor"])
        #expect(connections.hasCompleteHistory)
        #expect(connections.validity(of: "a", since: 0) == .valid(as: nil))
        connections.endSession("a", because: .expired, at: 10)
        connections.update("b", to: ada, number: 5, at: 20)
        #expect(connections.validity(of: "a", since: 100) == .ended(.expired))
        #expect(connections.validity(of: "b", since: 0) == .valid(as: ada))
        // A third end evicts the first one.
        connections.endSession("c", because: .expired, at: 30)
        connections.endSession("d", because: .expired, at: 40)
        #expect(!connections.hasCompleteHistory)
        #expect(connections.validity(of: "a", since: 10) == .unknown)
        #expect(connections.validity(of: "x", since: 10) == .unknown)
        #expect(connections.validity(of: "x", since: 11) == .valid(as: nil))
        #expect(connections.validity(of: "d", since: 0) == .ended(.expired))
        connections.reset(at: 50)
        #expect(connections.validity(of: "b", since: 50) == .unknown)
        #expect(connections.validity(of: "b", since: 51) == .valid(as: nil))
        #expect(connections.validity(of: "d", since: 51) == .ended(.expired))
    }

    @Test("the last one of several changes counts, in whatever order they arrive")
    func order() {
        let (first, second) = (connection("a"), connection("a"))
        connections.addConnection(first)
        connections.update("a", to: Principal(id: "ada", roles: ["new"]), number: 7)
        connections.update("a", to: Principal(id: "ada", roles: ["old"]), number: 6)
        #expect(first.principal?.roles == ["new"])
        connections.signIn(second, Principal(id: "ada", roles: ["old"]), session: "a", at: 6)
        #expect(second.principal?.roles == ["new"])
        connections.signIn(second, Principal(id: "ada", roles: ["newest"]), session: "a", at: 8)
        #expect(second.principal?.roles == ["newest"])
    }

    @Test("a closed connection is removed")
    func close() {
        let connection = connection("a")
        connections.addConnection(connection)
        #expect(connections.count == 1)
        connection.didClose()
        #expect(connections.count == 0)
    }

    @Test("a connection with a revoked authorization is authorized again by a sign-in, or anonymous after a sign-out")
    func again() {
        let connection = connection("a")
        connections.addConnection(connection)
        connections.endSession("a", because: .elsewhere)
        connections.signIn(connection, Principal(id: "bob"), session: "b")
        #expect(!connection.isRevoked && connection.principal?.id == "bob")
        connections.endSession("b", because: .elsewhere)
        #expect(connection.isRevoked)
        connections.signOut(connection)
        #expect(!connection.isRevoked && connection.principal == nil)
    }

    @Test("the last ten thousand ended sessions are recorded")
    func bounded() {
        for number in 0..<25_000 { connections.endSession("\(number)", because: .expired) }
        #expect(connections.reason("24999") == .expired && connections.reason("15000") == .expired)
        #expect(connections.reason("14999") == .unknown)
    }
}

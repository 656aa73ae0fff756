package import Distributed
package import TrebuchetActors

/// The calls of the authentication service. Clients know only these, not the actor.
@Resolvable
package protocol AuthInterface: DistributedActor where ActorSystem == TrebuchetActorSystem {
    distributed func signInAsGuest() async throws(AuthError) -> SessionGrant
    distributed func sendMagicCode(to email: String) async throws(AuthError) -> SendMagicCodeResponse
    distributed func verifyMagicCode(email: String, code: String) async throws(AuthError) -> SessionGrant
    distributed func refresh(_ refreshToken: String) async throws(AuthError) -> SessionGrant
    distributed func signIn(
        idToken: String, provider: String, nonce: String?
    ) async throws(AuthError) -> SessionGrant
    distributed func signOut(_ refreshToken: String) async throws(AuthError)
    distributed func sessions() async throws(AuthError) -> [SessionInfo]
    distributed func endSession(_ id: String) async throws(AuthError)
    distributed func endOtherSessions() async throws(AuthError) -> Int
    distributed func labelSession(_ label: String) async throws(AuthError)
    distributed func sendAddressCode(to email: String) async throws(AuthError) -> SendMagicCodeResponse
    distributed func changeAddress(to email: String, code: String) async throws(AuthError) -> User
    distributed func deleteAccount(code: String?) async throws(AuthError)
}

/// A reference to the authentication service of a server.
package typealias RemoteAuth = $AuthInterface

// Written by scripts/embed from the files in Web; do not change it here.
// swift-format-ignore-file

/// What the server brings for browsers.
enum WebFiles {
    /// The client.
    static let trebuchet: StaticString = ####"""
/* trebuchet.js of Trebuchet, MIT License */
var p=class extends Error{constructor(e,n,r,s,o){super(n);this.code=e,this.type=r,this.data=s,this.retryAfter=o}};p.prototype.name="TrebuchetError";var st=4096,ot=2**31-1,at=i=>new TextEncoder().encode(i).length;function M(i,t){let{code:e,message:n,errorMessage:r,type:s,data:o,retryAfterMilliseconds:c}=i,l=s&&t?.errors?.[s.split(".").pop()];return new p(e??"internal",n??r??"",s,l&&o!==void 0?l.read(o):o,c)}var j=class{constructor(t,e,n,r,s){this.w=t;this.e=e;this.M=n;this.lt=r;this.pt=s;this.E=new Map;this.d=[];this.h=0;this.Z=0}tt(t,e,n,r={}){let s=new Promise((o,c)=>this.Yt(t,e,n,r,(l,v)=>l?c(l):o(v)));return s.result=()=>s.then(o=>({ok:!0,value:o}),o=>({ok:!1,error:o})),s}Yt(t,e,n,{signal:r,timeout:s,genericSubstitutions:o,idempotent:c},l){let{target:v}=e,{a:b,e:a}=this,u=Math.min(s??this.w.timeout??3e4,ot),m=(y,T)=>l(new p(y,T));if(r?.aborted)return m("cancelled",v+" was cancelled");let{waitingCalls:h=1e3}=this.w;if(this.d.length>=h*(b.t?10:1))return m("rateLimited",this.d.length+" calls wait to be sent already (waitingCalls)");if(!b.Zt)return m("unavailable","there is no connection: "+b.u.getSnapshot().error?.message);let d;try{d=this.M.stringify(n.map((y,T)=>y==null?null:e.arguments?.[T]?.write(y)??y))}catch(y){return m("invalidArguments",`${v}: ${y?.message}`)}let f=this.lt(),w=(y,T)=>{g.t&&b._(g.t,"cancel",{callID:String(f)}),g.i(new p(y,T))},S=()=>w("cancelled",v+" was cancelled"),g={p:f,te:t,et:e,ee:d,ne:o,ie:s?a.now()+u:void 0,kt:c??e.idempotent??!1,At:0,i:(y,T)=>{this.E.delete(f)&&(a.clearTimeout(k),r?.removeEventListener("abort",S),g.t?this.Lt(g):this.d=this.d.filter(K=>K!==g),l(y,T),this.P(),b.It())}},k=u&&a.setTimeout(()=>{let y=g.ft?"answered":"sent, for want of a connection,";w("timeout",`${v} was not ${y} within ${u} ms`)},u);r?.addEventListener("abort",S),this.E.set(f,g),this.d.push(g),this.P()}P(){let t=this.a.t,e=t?.nt;if(!(!e||t!==this.t))for(let n=this.d[0];n;n=this.d[0]){if(this.h+this.pt()>=e.callsPerConnection)return;let r=this.re(n,e.session),s=at(r),o=s+st;if(this.h&&this.Z+o>e.callBytesPerConnection)return;let{target:c}=n.et;if(n.it&&!e.session)n.i(new p("unknownOutcome",c+" was sent, and the server of now keeps no answers"));else if(s>e.messageSize){let l=`${c} makes a message of ${s} bytes; the server takes ${e.messageSize} (ServerLimits.messageSize)`;n.i(new p(n.ft?"unknownOutcome":"invalidArguments",l))}else this.d.shift(),n.t=t,n.At=o,this.h++,this.Z+=o,n.kt&&(n.it??=e.session),n.ft=!0,this.a.jt(t,r)}}re(t,e){let{ie:n,ne:r}=t,s=t.kt&&(t.it??e),o={type:t.it?"repeat":"invocation",payload:{callID:String(t.p),actorID:t.te,targetIdentifier:t.et.target,...r&&{genericSubstitutions:r},...n&&{timeoutMilliseconds:Math.max(1,Math.ceil(n-this.e.now()))},...s&&{session:s}}};return this.M.stringify(o).slice(0,-2)+`,"arguments":${t.ee}}}`}Lt(t){t.t===this.t&&(this.h--,this.Z-=t.At)}N(t){this.t=t,this.h=this.Z=0,this.P()}se({callID:t,error:e,result:n}){let r=this.E.get(Number(t));if(!r)return!1;let{et:s}=r,o;try{e?o=M(e,s):s.result&&n!=null&&(n=s.result.read(n))}catch(c){o=new p("internal",`the answer of ${s.target} cannot be read: `+c?.message)}return r.i(o,n),!0}mt(t){return[...this.E.values()].some(e=>e.t===t)}$(t,e){for(let n of[...this.E.values()])n.t===t&&(n.it?(this.Lt(n),n.t=void 0,this.d.push(n)):this.Mt(n,e));this.d.sort((n,r)=>n.p-r.p),this.P()}k(t){for(let e of[...this.E.values()])e.t&&!this.a.m||(e.ft?this.Mt(e,t):e.i(new p("unavailable",t.message)))}Mt(t,e){let n=`${t.et.target} was sent and not answered, so it may have run: ${e.message}`;t.i(new p("unknownOutcome",n))}};function q(i,t,e,n){return i?n*Math.min(t*2**Math.min(i-1,30),e):0}var x=Object.hasOwn,C=i=>typeof i=="object"&&i!==null;function _(i,t,e){Object.defineProperty(i,t,{value:e,writable:!0,enumerable:!0,configurable:!0})}function Q(i,t){return C(i)&&C(t)&&Array.isArray(i)===Array.isArray(t)}function V(i,t){if(!Q(i,t))return i===t;let e=Object.keys(i);return e.length===Object.keys(t).length&&e.every(n=>x(t,n)&&V(i[n],t[n]))}function z(i,t){if(!Q(i,t))return t;let e=Object.keys(t),n=e.length===Object.keys(i).length;for(let r of e){let s=t[r],o=x(i,r),c=o?z(i[r],s):s;c!==s&&_(t,r,c),n&&=o&&c===i[r]}return n?i:t}function A(i){if(i==="")return[];if(i[0]!=="/"||/~(?![01])/.test(i))throw new SyntaxError("no JSON pointer: "+i);return i.slice(1).split("/").map(t=>t.replace(/~1/g,"/").replace(/~0/g,"~"))}function G(i,t){return C(i)&&x(i,t)&&(!Array.isArray(i)||F(t))?i[t]:void 0}var F=i=>/^(0|[1-9]\d*)$/.test(i);function J(i){(globalThis.reportError??console.error)(i)}var O=class{constructor(){this.D=new Set}get h(){return this.D.size}R(t){let e={tt:t};return this.D.add(e),()=>void this.D.delete(e)}n(...t){for(let e of[...this.D])if(this.D.has(e))try{e.tt(...t)}catch(n){J(n)}}},L=class{constructor(t){this.s=t;this.r=new O;this.getSnapshot=()=>this.s;this.subscribe=t=>this.r.R(t)}_t(t){this.s=t,this.r.n()}};var H=1e4,X=2e4,ht=1e4,ct=1e4,ut=6e4,dt={callsPerConnection:1024,callBytesPerConnection:16<<20,messageSize:1<<20},P=class{constructor(t,e,n,r,s){this.y=t;this.w=e;this.e=n;this.M=r;this.S=s;this.m=!1;this.U=new Set;this.p=0;this.V=!1;this.vt=!1;this.F=!1;this.ot=0;this.L=0;this.Pt=!1;this.J=!1;this.u=new L({phase:"connecting",since:n.now(),failures:0}),this.Nt=n.listen(()=>this.oe()),this.ht()}get Zt(){return!this.m&&!!(this.t||this.f||this.V||this.z)}_(t,e,n){this.jt(t,this.M.stringify({type:e,payload:n}))}jt(t,e){t.W.readyState===1&&t.W.send(e)}ae(){this.m||(this.L=0,this.J=!1,this.c=void 0,this.B(),this.t&&this.$t(this.t),!this.f&&!this.V&&this.ht())}he(){if(!this.m){this.m=!0,this.p++,this.c=new p("unavailable","the client was closed"),this.Nt(),this.B(),this.e.clearTimeout(this.st),this.e.clearTimeout(this.A);for(let t of[this.t,this.f,...this.U])t&&this.K(t);this.t=this.f=void 0,this.n(),this.S.k(this.c)}}It(){if(this.t)for(let t of this.U)this.S.mt(t)||this.K(t)}yt(t,e){this.K(t),this.gt(t,new p("unavailable",e))}ce(t,e){let n=new p("unauthenticated",e);if(t===this.t){if(typeof this.w.token=="function")return this.K(t),this.gt(t,n);this.c=n,this.J=!0,this.n()}}ue(t,e){t===this.t&&(this.$t(t),this.Dt(t)||this.L++,this.Rt(Math.min(Math.max(0,e),ut),!0))}async ht(){let t=++this.p,{token:e}=this.w,n;this.V=!0;try{n=await(typeof e=="function"?e():e)}catch(l){if(t!==this.p)return;this.V=!1;let v="there is no token to connect with: "+l?.message;return this.v(new p("unauthenticated",v))}if(t!==this.p)return;if(this.V=!1,n&&!/^[\w\-.~+]+$/.test(n)){let l="a token has letters, digits and -._~+ alone";return this.v(new p("invalidArguments",l),!0)}let r=["trebuchet.v3"];n&&r.push("bearer."+n);let s;try{s=new(this.w.WebSocket??globalThis.WebSocket)(this.y,r)}catch{let l=`there is no WebSocket, or ${this.y} is no address of one`;return this.v(new p("unavailable",l),!0)}let o={W:s,bt:0};this.f=o,this.st=this.e.setTimeout(()=>this.yt(o,`${this.y} did not answer within ${H/1e3} s`),H);let c;s.onopen=()=>this.q(o),s.onmessage=l=>this.Q(o,l.data),s.onerror=l=>c=Number(/response: (\d{3})/.exec(l?.message)?.[1]),s.onclose=l=>{let{code:v}=l,b=o===this.f&&(c===403||c===401&&typeof e!="function"),a=o.bt?`the connection to ${this.y} was closed (${v}${l.reason?" "+l.reason:""})`:c?`${this.y} answers ${c}`:`${this.y} cannot be reached, or does not let this page or its token in: a browser does not tell which`,u=c===401?"unauthenticated":c===403?"unauthorized":"unavailable";this.Ut(o),this.gt(o,new p(u,a),b)},this.n()}q(t){if(this.e.clearTimeout(this.st),this.f=void 0,t.W.protocol!=="trebuchet.v3")return this.K(t),this.v(new p("unavailable",this.y+" does not speak trebuchet.v3"),!0);this.t=t,t.bt=this.ot=this.e.now(),this.F=!1,this._(t,"hello",{}),this.wt(),this.S.q(t),this.It()}Q(t,e){t===this.t&&(this.ot=this.e.now(),this.F=!1);try{let{type:n,payload:r}=this.M.parse(e);n==="hello"||n==="error"&&!t.nt?this.N(t,r):n==="goAway"?this.ue(t,Number(r.reconnectAfterMilliseconds)||0):n==="error"&&r.code==="unauthenticated"?this.ce(t,r.message):this.S.Q(n,r,t)}catch(n){this.yt(t,"the server sent what is no message: "+n?.message)}}N(t,e){let n=!t.nt;t.nt={...dt,...C(e.limits)&&e.limits,session:e.session},!(!n||t!==this.t)&&(this.Pt=!0,this.c=void 0,this.J=!1,this.n(),this.S.N(t))}gt(t,e,n=!1){if(t===this.f)return this.e.clearTimeout(this.st),this.f=void 0,this.v(e,n,e.code!=="unavailable");this.U.delete(t);let r=t===this.t;r&&(this.e.clearTimeout(this.A),this.t=void 0,this.Dt(t)),this.S.$(t,e),r&&this.v(e)}v(t,e=!1,n=e){if(this.c=t,this.L++,this.J=n,!e)return this.Rt(0);this.n(),this.S.k(t)}Rt(t,e=!1){this.B(),this.vt=e;let{initialDelay:n=200,maximumDelay:r=1e4}=this.w,s=Math.max(t,q(this.L,n,r,this.e.random()));this.rt=this.e.now()+s,this.z=this.e.setTimeout(()=>{this.B(),this.ht()},s),this.n()}B(){this.e.clearTimeout(this.z),this.z=this.rt=void 0,this.vt=!1}Dt(t){let e=this.e.now()-t.bt>=ct;return e&&(this.L=0),e}$t(t){this.e.clearTimeout(this.A),this.t=void 0,this.U.add(t),this.n()}K(t){this.U.delete(t),this.Ut(t),t.W.close()}Ut(t){let{W:e}=t;e.onopen=e.onmessage=e.onclose=null,e.onerror=()=>{}}wt(){let t=this.t,e=this.e.now()-this.ot;this.A=this.e.setTimeout(()=>{this.e.now()-this.ot<X?this.wt():this.e.isVisible()&&this.Vt(t)},X-e)}Vt(t){this.F=!0,this._(t,"hello",{}),this.e.clearTimeout(this.A),this.A=this.e.setTimeout(()=>{this.F?this.yt(t,this.y+" says nothing any more"):this.wt()},ht)}oe(){this.n(),this.e.isVisible()&&(this.t?this.F||this.Vt(this.t):this.z&&!this.vt&&(this.B(),this.ht()))}n(){let t=this.u.getSnapshot(),e=this.m?"offline":this.J?"refused":this.t?.nt?"live":this.e.isOnline()?this.Pt?"stale":"connecting":"offline",n={phase:e,since:e===t.phase?t.since:this.e.now(),failures:this.L,...this.c&&{error:this.c},...this.rt!==void 0&&{retryAt:this.rt}};["phase","failures","error","retryAt"].every(s=>t[s]===n[s])||this.u._t(n)}};function Y(){let i=globalThis;return{now:()=>Date.now(),random:()=>Math.random(),setTimeout:(t,e)=>setTimeout(t,e),clearTimeout:t=>clearTimeout(t),isOnline:()=>i.navigator?.onLine!==!1,isVisible:()=>i.document?.visibilityState!=="hidden",listen(t){let e=[[i,"online"],[i,"offline"],[i,"pageshow"],[i.document,"visibilitychange"]];for(let[n,r]of e)n?.addEventListener?.(r,t);return()=>{for(let[n,r]of e)n?.removeEventListener?.(r,t)}}}}var I=class{constructor(){this.I=[];this.ct=!1;this.St=[];this.l=()=>{}}get h(){return this.I.length}zt(t,e){if(this.ct)return;let n=this.St.shift();if(n)return n.Ft({value:t,done:!1});e&&(this.I.length=0),this.I.push(t)}i(t){if(!this.ct){this.ct=!0,this.c=t,this.l();for(let e of this.St.splice(0))this.Jt(e.Ft,e.de)}}Jt(t,e){let n=this.c;this.c=void 0,n?e(n):t({value:void 0,done:!0})}next(){return new Promise((t,e)=>{this.I.length?t({value:this.I.shift(),done:!1}):this.ct?this.Jt(t,e):this.St.push({Ft:t,de:e})})}return(){return this.I=[],this.i(),Promise.resolve({value:void 0,done:!0})}};var N=class{constructor(t,e,n,r){this.T=t;this.o=e;this.C=n;this.Bt=r}get status(){return this.o.u}subscribe(t,e){let n=this.T.Wt(this.o,s=>{let o=s;try{this.C&&s!=null&&(o=this.C.read(s))}catch(c){return r(new p("internal","an event cannot be read: "+c?.message))}t(o)},s=>r(s)),r=s=>{n(),e?.(s)};return n}[Symbol.asyncIterator](){let t=new I,e=this.subscribe(n=>{if(t.h<this.Bt)return t.zt(n);t.i(new p("overflow",`${this.Bt} events waited to be read (eventBuffer)`))},n=>t.i(n));return t.l=e,t}};var lt={},E=class{constructor(t,e,n,r=""){this.T=t;this.o=e;this.C=n;this.Qt=r;this.qt=lt;this.r=new O;this.getSnapshot=()=>{let t=this.Kt.reduce(G,this.o.s);if(t!==this.qt){this.qt=t;try{this.s=t==null||!this.C?t:this.C.read(t)}catch(e){J(e)}}return this.s};this.subscribe=t=>{let e=this.r.R(t);if(this.l)this.T.G(this.o);else{let n=this.getSnapshot(),r=()=>{let s=this.getSnapshot();Object.is(s,n)||(n=s,this.r.n())};this.l=this.T.Wt(this.o,r,()=>{})}return()=>{e(),!this.r.h&&(this.l?.(),this.l=void 0)}};this.Kt=A(r)}get status(){return this.o.u}[Symbol.asyncIterator](){let t=new I,e=()=>{let r=this.getSnapshot();r!==void 0&&t.zt(r,!0)},n=[this.subscribe(e),this.o.Tt.R(r=>t.i(r))];return t.l=()=>n.forEach(r=>r()),e(),t}at(t){return new E(this.T,this.o,Z(this.C,t),this.Qt+t)}filter(t){let{actorID:e,targetIdentifier:n,filter:r}=this.o.Ct,s=(r?.path??"")+this.Qt+(t.path??""),o={...r,...t,...s&&{path:s}},c=this.T.o({actorID:e,targetIdentifier:n,filter:o},!1);return new E(this.T,c,Z(this.C,t.path??""))}};function Z(i,t){return A(t).reduce((e,n)=>e?.part?.(n),i)}function tt(i,t){let e=new Set,n=i,r=a=>{throw new Error("the patch does not fit at "+a)},s=a=>{if(e.has(a))return a;let u=Array.isArray(a)?a.slice():{...a};return e.add(u),u},o=(a,u,m)=>{let h=F(a)?Number(a):-1;return h>=0&&h<u?h:r(m)},c=a=>A(a).reduce((u,m)=>Array.isArray(u)?u[o(m,u.length,a)]:C(u)&&x(u,m)?u[m]:r(a),n),l=(a,u)=>{let m=A(a),h=m.pop(),d=n=s(C(n)?n:r(a));for(let f of m){let w=Array.isArray(d)?String(o(f,d.length,a)):f,S=x(d,w)?d[w]:void 0,g=s(C(S)?S:r(a));_(d,w,g),d=g}u(d,h)},v=a=>a===""?r(a):l(a,(u,m)=>{Array.isArray(u)?u.splice(o(m,u.length,a),1):x(u,m)?delete u[m]:r(a)}),b=(a,u,m)=>{a===""?n=u:l(a,(h,d)=>{if(!Array.isArray(h))m&&!x(h,d)&&r(a),_(h,d,u);else if(m)h[o(d,h.length,a)]=u;else{let{length:f}=h;h.splice(d==="-"?f:o(d,f+1,a),0,u)}})};for(let{op:a,path:u,from:m,value:h}of t){let d=a==="add"||a==="replace"||a==="test";if((d?h===void 0:a!=="remove"&&m===void 0)&&r(u),a==="remove")v(u);else if(a==="test")V(c(u),h)||r(u);else if(d)b(u,h,a==="replace");else if(a==="copy"||a==="move"){let f=c(m);if(a==="move"){if(u.startsWith(m+"/")&&r(u),u===m)continue;v(m)}else e=new Set;b(u,f)}else r(u)}return n}var W={phase:"waiting"},et={phase:"live"},ft={phase:"stale"},$=class{constructor(t,e){this.Ct=t;this.X=e;this.u=new L(W);this.r=new O;this.Tt=new O;this.x=!1;this.H="";this.b=0}le(){let{Ct:t,g:e,j:n}=this;return n===void 0?["invocation",{callID:e,...t}]:["streamResume",{streamID:n,callID:e,...t,epoch:this.H,lastSequence:this.b}]}xt(){this.H="",this.b=0,this.x=!1}fe({streamID:t,epoch:e,sequenceNumber:n}){let r=e!==this.H;return this.X&&r&&this.H?!1:(this.j=t,this.H=e,this.x=!0,r&&(this.b=Number(n)||0),(this.X||!r&&this.s!==void 0)&&this.n(et),!0)}pe({sequenceNumber:t,data:e,patch:n,base:r}){if(!(t>this.b))return!0;if(this.X)return t!==this.b+1?!1:(this.b=t,this.r.n(e),!0);let s=e;if(n!==void 0){if(r!==this.b||this.s===void 0)return!1;try{s=tt(this.s,n)}catch{return!1}}else{if(e===void 0)return!0;s=z(this.s,e)}this.b=t;let o=s!==this.s;return this.s=s,this.n(et),o&&this.r.n(s),!0}Ot(){this.t=this.g=void 0,this.x=!1,this.n(this.s===void 0&&!this.X?W:ft)}me(){this.t=this.g=this.j=void 0,this.xt(),this.u.getSnapshot().phase!=="failed"&&this.n(W)}v(t){this.t=this.g=this.j=void 0,this.xt(),this.n({phase:"failed",error:t}),this.Tt.n(t)}n(t){let e=this.u.getSnapshot();(e.phase!==t.phase||e.error!==t.error)&&this.u._t(t)}};var pt=100,mt=6e5,D=class{constructor(t,e){this.e=t;this.lt=e;this.dt=new Map;this.ve=new FinalizationRegistry(t=>{this.dt.get(t)?.deref()||this.dt.delete(t)});this.O=new Set;this.pt=()=>{let t=0;for(let e of this.O)e.g&&!e.x&&t++;return t}}o(t,e){let n=JSON.stringify([t,e]),r=this.dt.get(n)?.deref();return r||(r=new $(t,e),this.dt.set(n,new WeakRef(r)),this.ve.register(r,n)),r}Wt(t,e,n){let r=[t.r.R(e),t.Tt.R(n)];return this.e.clearTimeout(t.ut),this.O.add(t),this.G(t),()=>{for(let s of r.splice(0))s();t.r.h||this.Gt(t,pt)}}G(t){let e=this.a.t;!e||t.t===e||(t.t=e,t.x=!1,t.g=String(this.lt()),this.a._(e,...t.le()))}Gt(t,e){if(this.e.clearTimeout(t.ut),this.a.m)return;let n=()=>t.r.h?this.G(t):this.ye(t);t.ut=this.e.setTimeout(n,e)}ye(t){this.O.delete(t),this.l(t),t.me()}l(t){t.t&&t.x&&this.i(t.t,t.j)}i(t,e){this.a._(t,"streamEnd",{streamID:e,reason:"clientUnsubscribed"})}Y(t,e){t.v(e);let{code:n,retryAfter:r}=e;if(t.r.h&&(n==="rateLimited"||n==="unavailable")){let s=r>0?Math.min(r,mt):1e3;this.Gt(t,s*(1+this.e.random()))}}q(){for(let t of this.O)t.r.h&&this.G(t)}$(t){for(let e of this.O)e.t===t&&e.Ot()}k(t){if(this.a.m)for(let e of[...this.O])this.e.clearTimeout(e.ut),this.Y(e,t)}ge({callID:t,error:e},n){let r=this.Et(s=>s.t===n&&s.g===t);r&&e&&this.Ht(r,M(e))}Q(t,e,n){let{streamID:r}=e;if(t==="streamStart"){let o=this.Et(c=>c.t===n&&c.g===e.callID);if(!o)return this.i(n,r);o.fe(e)||this.Xt(o,n,r,"begin anew");return}let s=this.Et(o=>o.t===n&&o.j===r);if(s){if(t==="streamData"){if(!s.x||s.pe(e))return;if(s.X)return this.Xt(s,n,r,"did not come");s.xt(),s.t=void 0,this.G(s)}else if(t==="streamError")this.Ht(s,M(e));else if(t==="streamEnd"){let{reason:o}=e;o==="serverDraining"||o==="connectionClosed"?s.Ot():o==="actorTerminated"?this.Y(s,new p("actorNotFound","the actor is gone")):this.Y(s,new p("unavailable","the stream has ended: "+o))}}}Ht(t,e){e.code==="unavailable"&&t.t!==this.a.t?t.Ot():this.Y(t,e)}Xt(t,e,n,r){this.i(e,n),this.Y(t,new p("overflow",`events of ${t.Ct.actorID} ${r}`))}Et(t){for(let e of this.O)if(t(e))return e}};function vt(i,t={}){let e={...Y(),...t.environment},n=t.json??JSON,r=String(new URL(i,globalThis.location?.href)).replace(/^http/,"ws"),s=0,o=()=>++s,c=new D(e,o),l=new j(t,e,n,o,c.pt),v=new P(r,t,e,n,{q:()=>c.q(),N:h=>l.N(h),Q(h,d,f){h!=="response"?c.Q(h,d,f):l.se(d)||c.ge(d,f),h!=="streamData"&&l.P()},$(h,d){c.$(h),l.$(h,d)},k(h){l.k(h),c.k(h)},mt:h=>l.mt(h)});l.a=c.a=v;let b=(h,{target:d,value:f})=>new E(c,c.o({actorID:h,targetIdentifier:d},!1),f),a=(h,{target:d,value:f})=>new N(c,c.o({actorID:h,targetIdentifier:d},!0),f,t.eventBuffer??1e3),u=h=>{let d=new Map;return{call:(f,w=[],S)=>l.tt(h,{target:f},w,S),state(f="observeState"){return d.has(f)||d.set(f,b(h,{target:f})),d.get(f)},events:f=>a(h,{target:f})}},m=(h,d)=>{let f={};for(let[S,g]of Object.entries(h.methods??{})){let k=g.target.split(":").length-1;f[S]=(...y)=>{let T=Array.from({length:k},(K,rt)=>y[rt]);return l.tt(d,g,T,y[k])}}let w=(S,g={})=>{for(let[k,y]of Object.entries(g)){let T;Object.defineProperty(f,k,{get:()=>T??=S(d,y),enumerable:!0})}};return w(b,h.states),w(a,h.events),f};return{status:v.u,actor:(h,d)=>d===void 0?u(h):m(h,d),reconnect:()=>v.ae(),close:()=>v.he()}}function yt(i){return i}var gt=Symbol.for("trebuchet.number"),R=class{constructor(t){this.text=t}get[gt](){return!0}toString(){return this.text}valueOf(){return Number(this.text)}toJSON(){return 0n}};function U(i){let t=new WeakMap;return e=>{if(typeof e!="object"||!e)return i(e);let n=t.get(e);return n===void 0&&t.set(e,n=i(e)),n}}var nt={read:i=>i,write:i=>i};function B(i,t){return Object.fromEntries(Object.entries(i).map(([e,n])=>[e,t(n,e)]))}var bt={read:i=>new Date(i),write:i=>i.toISOString()},wt={read:i=>Uint8Array.from(atob(i),t=>t.charCodeAt(0)),write:i=>btoa(Array.from(i,t=>String.fromCharCode(t)).join(""))},St={read:i=>BigInt(String(i)),write:i=>Number.isSafeInteger(Number(i))?Number(i):i},Tt={read:String,write:i=>i.replace(/\D/g,"").length<16?Number(i):new R(i)};function Ct(i){return{read:U(t=>t.map(e=>i.read(e))),write:t=>t.map(e=>i.write(e)),part:()=>i}}function xt(i){return{read:U(t=>B(t,e=>i.read(e))),write:t=>B(t,e=>i.write(e)),part:()=>i}}function Ot(i=nt,t=nt){let e=n=>n%2?t:i;return{read:U(n=>{let r=new Map;for(let s=0;s<n.length;s+=2)r.set(i.read(n[s]),t.read(n[s+1]));return r}),write:n=>[...n].flatMap(([r,s])=>[i.write(r),t.write(s)]),part:n=>e(Number(n))}}function it(i){let t=n=>Object.hasOwn(i,n)?i[n]:void 0,e=(n,r)=>B(n,(s,o)=>s==null?s:t(o)?.[r](s)??s);return{read:U(n=>e(n,"read")),write:n=>e(n,"write"),part:t}}var Et=it;function kt(i){return{read:t=>t==null?null:i.read(t),write:t=>t==null?null:i.write(t),part:t=>i.part?.(t)}}function At(i){return{read:t=>i().read(t),write:t=>i().write(t),part:t=>i().part?.(t)}}export{p as TrebuchetError,yt as actorType,Ct as array,St as bigint,vt as connect,wt as data,bt as date,Tt as decimal,At as lazy,Ot as map,kt as nullable,xt as record,it as struct,Et as union};

"""####

    /// The client of the services.
    static let services: StaticString = ""

    /// The page at `/` of `trebuchet serve`.
    static let start: StaticString = ####"""
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Trebuchet</title>
<link rel="icon" href="data:,">
<style>
:root {
    color-scheme: light dark;
    --page: #f6f4ef; --card: #fffdf8; --ink: #23211c; --soft: #736d60; --line: #e3ddcf; --accent: #b4532a; --good: #3c7a4d;
}
@media (prefers-color-scheme: dark) {
    :root { --page: #1a1917; --card: #242220; --ink: #ece7db; --soft: #9d9686; --line: #3a3733; --accent: #e2875b; --good: #7cc08f; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 40rem; margin: 0 auto; padding: clamp(1.5rem, 6vw, 4rem) 1.25rem; }
header { display: flex; align-items: baseline; justify-content: space-between; gap: 1rem; }
h1 { font-size: 1.6rem; letter-spacing: -.02em; margin: 0; }
h2 { font-size: 1rem; margin: 2.5rem 0 .5rem; }
p { margin: .35rem 0 1.25rem; color: var(--soft); }
#status { font-size: .85rem; color: var(--soft); white-space: nowrap; }
#status::before { content: ""; display: inline-block; width: .6em; height: .6em; margin-right: .45em; border-radius: 50%; background: var(--accent); }
#status[data-phase=live]::before { background: var(--good); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 14px; overflow: hidden; box-shadow: 0 1px 3px #0001; }
form { display: flex; border-bottom: 1px solid var(--line); }
input[type=text] { flex: 1; min-width: 0; border: 0; background: none; color: inherit; font: inherit; padding: .95rem 1.1rem; }
input[type=text]::placeholder { color: var(--soft); opacity: .8; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
button { border: 0; background: none; color: var(--accent); font: inherit; font-weight: 600; padding: 0 1.1rem; cursor: pointer; }
ul { list-style: none; margin: 0; padding: 0; }
li { display: flex; align-items: center; border-bottom: 1px solid var(--line); }
li:last-child { border-bottom: 0; }
li label { flex: 1; min-width: 0; display: flex; gap: .75rem; align-items: center; padding: .7rem 1.1rem; cursor: pointer; overflow-wrap: anywhere; }
li input { accent-color: var(--accent); width: 1.1rem; height: 1.1rem; margin: 0; flex: none; }
li.done span { color: var(--soft); text-decoration: line-through; }
li button { font-weight: 400; color: var(--soft); padding: .7rem 1.1rem; }
#empty, #error { padding: .9rem 1.1rem; margin: 0; }
#error { color: var(--accent); }
[hidden] { display: none !important; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .8rem 1rem; overflow-x: auto; font: .85rem/1.5 ui-monospace, monospace; margin: .35rem 0 1rem; }
a { color: var(--accent); }
</style>
</head>
<body>
<main>
<header><h1>Trebuchet</h1><span id="status" role="status">connecting</span></header>
<p>Everybody who opens this page shares one list. Open it in a second window and look.</p>
<section class="card" aria-label="To do">
    <form id="form" autocomplete="off">
        <input id="title" type="text" placeholder="What is to be done?" aria-label="What is to be done?" maxlength="200" required>
        <button>Add</button>
    </form>
    <ul id="list"></ul>
    <p id="empty" hidden>Nothing to do.</p>
    <p id="error" role="alert" hidden></p>
</section>

<h2>From a terminal</h2>
<pre id="commands">trebuchet call todos 'addTodo(title:)' '"Milk"'
trebuchet observe todos observeState</pre>

<h2>A page of your own</h2>
<p>Save this as <code>public/index.html</code> and start <code>trebuchet serve --static public</code>. There is nothing to build.</p>
<pre id="sample">&lt;!doctype html&gt;
&lt;pre id="out"&gt;&lt;/pre&gt;
&lt;script type="module"&gt;
import { connect } from "/trebuchet.js"

const todos = connect("/").actor("todos")
const state = todos.state("observeState")
state.subscribe(() =&gt; {
    out.textContent = JSON.stringify(state.getSnapshot(), null, 2)
})
await todos.call("addTodo(title:)", ["Written by my page"])
&lt;/script&gt;</pre>

<h2>An actor of your own</h2>
<p>The list is a Swift actor of forty lines. Write yours, and <code>server.pages(try .folder("public"), .clientLibrary)</code> serves your page beside it. What this server hosts stands in <a href="/schema.json">/schema.json</a>.</p>
</main>

<script type="module">
const $ = id => document.getElementById(id)

function fail(error) {
    $("error").textContent = error ? error.message || String(error) : ""
    $("error").hidden = !error
}

function row(item, todos) {
    const [line, label, box, text, remove] = ["li", "label", "input", "span", "button"].map(name => document.createElement(name))
    line.className = item.isDone ? "done" : ""
    box.type = "checkbox"
    box.checked = item.isDone
    // The list changes when the server has changed it: the box shows what is so.
    box.addEventListener("change", () => todos.call("toggleTodo(id:)", [item.id]).then(() => fail(), error => {
        box.checked = item.isDone
        fail(error)
    }))
    text.textContent = item.title
    remove.type = "button"
    remove.textContent = "×"
    remove.setAttribute("aria-label", `Remove ${item.title}`)
    remove.addEventListener("click", () => todos.call("removeTodo(id:)", [item.id]).then(() => fail(), fail))
    label.append(box, text)
    line.append(label, remove)
    return line
}

try {
    const { connect } = await import("/trebuchet.js")
    const client = connect("/")
    const todos = client.actor("todos")
    const state = todos.state("observeState")

    // Rows are kept by the item that they show: of what did not change, the client gives the same object.
    let rows = new Map()
    function show() {
        const items = state.getSnapshot()?.todos ?? []
        const next = new Map()
        for (const item of items) next.set(item, rows.get(item) ?? row(item, todos))
        rows = next
        $("list").replaceChildren(...rows.values())
        $("empty").hidden = items.length > 0 || state.getSnapshot() === undefined
    }
    function tell() {
        const { phase, error } = client.status.getSnapshot()
        $("status").textContent = phase
        $("status").dataset.phase = phase
        const failed = state.status.getSnapshot()
        fail(phase === "refused" ? error : failed.phase === "failed" ? failed.error : undefined)
    }
    state.subscribe(show)
    state.status.subscribe(tell)
    client.status.subscribe(tell)
    show()
    tell()

    $("form").addEventListener("submit", async event => {
        event.preventDefault()
        const title = $("title").value.trim()
        if (!title) return
        $("title").value = ""
        try {
            await todos.call("addTodo(title:)", [title], { idempotent: true })
            fail()
        } catch (error) {
            $("title").value = title
            fail(error)
        }
    })
} catch (error) {
    $("status").textContent = "no client library"
    fail(error)
}
</script>
</body>
</html>

"""####
}

package uritemplate_test
import ("testing";"time";"github.com/go-psi/psi/internal/uritemplate")
func TestZ(t *testing.T){
 for _, p := range [][2]string{{"r://{+a}{?ref}","r://{+a}{?ref,line}"},{"r://x/{+a}{?ref,line}","r://x/{+a}{?line,ref}"},{"r://{o}/{n}/{+a}{?ref,line}","r://x/{n}/{+a}{?line,ref,page,size,sort}"},{"{+a}{?b,c,d,e,f,g,h}","{+a}{?h,g,f,e,d,c,b,i}"},{"r://{o}/{n}/{a}{?ref,line,page,size,sort}","r://x/{n}/{a}{?line,ref,page,size,sort}"}} {
  a:=parse(t,p[0]); b:=parse(t,p[1]); s:=time.Now(); r:=uritemplate.Compare(a,b); t.Log(r,time.Since(s))
 }
}
